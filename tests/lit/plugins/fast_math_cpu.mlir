// RUN: %opt %s --target cpu:x86-64-v3 --pass fast-math-cpu | filecheck %s
// RUN: %opt %s --target cpu:x86-64-v3 --pass 'fast-math-cpu{division=false fusion=false}' | filecheck %s --check-prefix=NONE
// CHECK: arith.mulf %{{.*}} fastmath<arcp,contract> : vector<8xf32>
// CHECK: arith.addf %{{.*}} fastmath<arcp,contract> : vector<8xf32>
// CHECK: math.sqrt %{{.*}} : vector<8xf32>
// NONE-NOT: fastmath
func.func @f(%x: vector<8xf32>, %y: vector<8xf32>) -> vector<8xf32> {
  %a = arith.mulf %x, %y : vector<8xf32>
  %b = arith.addf %a, %y : vector<8xf32>
  %c = math.sqrt %b : vector<8xf32>
  return %c : vector<8xf32>
}
