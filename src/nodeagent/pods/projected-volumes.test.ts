import { expect, it } from 'vitest'
import { digestOf } from './projected-volumes.ts'

const FILES = { a: { content: Buffer.from('xy'), mode: 0o644 }, b: { content: Buffer.from('z'), mode: 0o600, user: 7 } }
const digestWith = (files: object) => digestOf(new Map(Object.entries({ ...FILES, ...files })))

it('the digest of files does not depend on their order', () => {
  expect(digestOf(new Map(Object.entries(FILES).reverse()))).toBe(digestWith({}))
})

it('the digest of files changes with every path, mode, owner and content', () => {
  const digests = [
    digestWith({}),
    digestWith({ c: FILES.a }),
    digestWith({ a: { ...FILES.a, mode: 0o600 } }),
    digestWith({ a: { ...FILES.a, user: 7 } }),
    digestWith({ b: { ...FILES.b, user: 8 } }),
    digestWith({ b: { content: FILES.b.content, mode: 0o600 } }),
    digestWith({ a: { ...FILES.a, content: Buffer.from('xz') } }),
    digestWith({ a: { ...FILES.a, content: Buffer.from('x') }, b: { ...FILES.b, content: Buffer.from('yz') } }),
    digestOf(new Map()),
  ]
  expect(new Set(digests).size).toBe(digests.length)
})
