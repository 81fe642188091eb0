// Returns free memory of the C library to the kernel. glibc by itself returns only what is free at the end of its heap, and
// buffers that stay in use keep everything below them resident: after a load of 12,000 claims, 44 of 54 MB were free.
import { loadCFunction } from './c-library.ts'

/** Returns the function malloc_trim of glibc. Undefined if the C library of this process has none. */
export function loadMallocTrim(): (() => void) | undefined {
  const trim = loadCFunction('int malloc_trim(size_t pad)')
  return trim && (() => void trim(0))
}
