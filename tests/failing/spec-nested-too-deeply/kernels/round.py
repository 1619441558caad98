from back import make

scale_kernel = make()
