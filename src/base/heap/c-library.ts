// Calls functions of the C library of this process that Node.js does not offer.
import { createRequire } from 'node:module'

/** Returns a function of the C library, declared as in C. Undefined without it, or on a platform for which koffi has no binary. */
export function loadCFunction(declaration: string): ((...values: readonly number[]) => number) | undefined {
  if (process.platform !== 'linux') return
  try {
    // Not import(): with Node.js 20 it fails in a script with a code cache.
    const koffi: typeof import('koffi') = createRequire(import.meta.url)('koffi')
    return koffi.load(null).func(declaration)
  } catch {
    return
  }
}
