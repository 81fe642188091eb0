// Creates buffers with their own memory. Node.js places small buffers into shared blocks of 8 KiB, and a single buffer that is
// kept, such as a value in a cache, keeps its whole block in memory.

export function bytesOfText(text: string): Buffer {
  const bytes = Buffer.allocUnsafeSlow(Buffer.byteLength(text))
  bytes.write(text, 'utf8')
  return bytes
}

export function copyOfBytes(source: Uint8Array): Buffer {
  const bytes = Buffer.allocUnsafeSlow(source.length)
  bytes.set(source)
  return bytes
}
