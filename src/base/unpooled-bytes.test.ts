import { describe, expect, it } from 'vitest'
import { bytesOfText, copyOfBytes } from './unpooled-bytes.ts'

describe('unpooled bytes', () => {
  it('have their own memory of exactly their size', () => {
    for (const text of ['', 'claim', 'größer ☃', 'x'.repeat(10_000)]) {
      const bytes = bytesOfText(text)
      expect(bytes.toString()).toBe(text)
      expect(bytes.buffer.byteLength).toBe(bytes.length)
      const copy = copyOfBytes(bytes)
      expect(copy.equals(bytes)).toBe(true)
      expect(copy.buffer.byteLength).toBe(bytes.length)
    }
  })
})
