// Compiles a script with V8's code cache, which scripts/code-cache.mjs writes after the functions that a server needs have been
// compiled. The cache is in the directory of the script, and only the build writes it. One that is missing, damaged, of another
// script or of another release of V8 is ignored.
import { readFileSync } from 'node:fs'
import { Script } from 'node:vm'
import { crc32 } from 'node:zlib'

interface CompiledScript {
  readonly script: Script
  /** Whether V8 uses the cache. */
  readonly isFromCache: boolean
}

/** Compiles a script of ASCII characters, without import(). The URL names it in stack traces. */
export function compileScript({ file, url }: { readonly file: string; readonly url: string }): CompiledScript {
  const text = readFileSync(file)
  const cachedData = readCache(text, codeCacheOf(file))
  const script = new Script(text.toString('latin1'), { filename: url, cachedData })
  return { script, isFromCache: cachedData !== undefined && script.cachedDataRejected === false }
}

/** Returns the path of the cache beside the script: each release of V8 and each architecture has its own. */
const codeCacheOf = (file: string): string => `${file}.${process.versions.v8}-${process.arch}.cache`

/** The checksums of the script and of the code, after the code. V8 itself compares only lengths, versions and flags. */
const CHECKSUM_BYTES = 8

function readCache(text: Buffer, file: string): Buffer | undefined {
  let content: Buffer
  try {
    content = readFileSync(file)
  } catch {
    return undefined // the program only starts more slowly
  }
  const codeBytes = content.length - CHECKSUM_BYTES
  if (codeBytes <= 0) return undefined
  const code = content.subarray(0, codeBytes)
  const isIntact =
    content.readUInt32LE(codeBytes) === crc32(text) && content.readUInt32LE(codeBytes + 4) === crc32(code)
  return isIntact ? code : undefined
}
