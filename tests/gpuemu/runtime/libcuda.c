// SPDX-License-Identifier: Apache-2.0
//
// The four functions of the driver that Kokkos 4.5 calls itself: there is one context, that of the
// device that the process uses.
typedef int CUresult;
int cudaGetDevice(int* device);
CUresult cuStreamGetCtx(void* stream, void** context) {
  (void)stream;
  *context = (void*)1;
  return 0;
}
CUresult cuCtxPushCurrent_v2(void* context) {
  (void)context;
  return 0;
}
CUresult cuCtxPopCurrent_v2(void** context) {
  *context = (void*)1;
  return 0;
}
CUresult cuCtxGetDevice(int* device) {
  return cudaGetDevice(device);
}
