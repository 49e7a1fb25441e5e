// runtime_devices.h: the number of devices, the current one, and peers. Included by runtime_api.h.
//
// The model. KERNEL_XRAY_DEVICES says how many devices there are: 1 (by default) to 8, all alike, each with its share
// of half of this machine's memory. As in CUDA, each host thread has a current device, 0 at first. Memory, arrays,
// textures, streams, events, attributes of kernels and limits belong to the device that was current when they were made
// or set. A launch into another device's stream, recording an event in it, and the time between events of two devices
// are refused (cudaErrorInvalidResourceHandle). Any device can become the peer of any other.
//
// A kernel that touches memory of another device without peer access ends with an illegal access. Kernels of different
// devices take turns, on all host threads; while one runs, the pages of memory that it may not access are protected.
// Copies do not need peer access. Managed memory and host memory are every device's. Each device has its own values of
// __device__ and __constant__ variables; those of __managed__ variables are shared.
//
// Deviations from CUDA. A kernel that waits for a kernel on another device ends at its time limit. A variable of kernels
// has one address, which cudaGetSymbolAddress gives on every device: there it is the variable of whichever device uses
// it, so that a device cannot reach a peer's. Variables that are templates or members of classes, or declared by macros,
// and functions' static variables have one value for all devices unless the host has called a function for symbols with
// them. cudaMemcpyPeer does not check which devices the pointers belong to. NVIDIA's libraries and Thrust run as host
// code, to which all memory is accessible. A fault concerns all devices. PyTorch's side has device 0 only.
#pragma once

#include "device_types.h"
#include "runtime_types.h"

enum cudaDeviceP2PAttr {
  cudaDevP2PAttrPerformanceRank = 1,
  cudaDevP2PAttrAccessSupported = 2,
  cudaDevP2PAttrNativeAtomicSupported = 3,
  cudaDevP2PAttrCudaArrayAccessSupported = 4,
};
#define cudaPeerAccessDefault 0x00

SIMT_API cudaError_t cudaGetDeviceCount(int* count);
SIMT_API cudaError_t cudaGetDevice(int* device);
SIMT_API cudaError_t cudaSetDevice(int device);
SIMT_API cudaError_t cudaSetValidDevices(int* devices, int count);                 // checked, and of no effect
SIMT_API cudaError_t cudaChooseDevice(int* device, const cudaDeviceProp* wanted);  // the first: all match alike
SIMT_API cudaError_t cudaDeviceCanAccessPeer(int* can_access, int device, int peer);
SIMT_API cudaError_t cudaDeviceEnablePeerAccess(int peer,
                                                unsigned flags);  // of the current device to the peer's memory
SIMT_API cudaError_t cudaDeviceDisablePeerAccess(int peer);
SIMT_API cudaError_t cudaDeviceGetP2PAttribute(int* value, cudaDeviceP2PAttr attribute, int device, int peer);
SIMT_API cudaError_t cudaStreamGetDevice(cudaStream_t stream, int* device);
SIMT_API cudaError_t cudaMemcpyPeer(void* to, int to_device, const void* from, int from_device, size_t count);
SIMT_API cudaError_t cudaMemcpyPeerAsync(void* to, int to_device, const void* from, int from_device, size_t count,
                                         cudaStream_t stream = nullptr);
