// RUN: %opt %s --target cpu:x86-64-v3 | filecheck %s
// RUN: not precast opt %s --target cpu:x86-64-v3 --pass common.cse 2>&1 | filecheck %s --check-prefix=NATIVE
// CHECK: func.func @f(%arg0: !llvm.ptr)
// NATIVE: error: `common.cse` is a builtin pass: the CPU engine's IR takes Python passes only
func.func @f(%pointer: !llvm.ptr) {
  %value = llvm.load %pointer : !llvm.ptr -> f32
  llvm.store %value, %pointer : f32, !llvm.ptr
  return
}
