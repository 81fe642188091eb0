import { describe, expect, it } from 'vitest'
import { decodeEnvelope, encodeEnvelope } from './envelope.ts'
import { ProtobufError } from './reader.ts'
import { PROTOBUF_SAMPLES } from './samples.fixture.ts'

const MAGIC = '6b387300'
const decodeHex = (hex: string) => decodeEnvelope(Buffer.from(hex.replaceAll(' ', ''), 'hex'))

describe('protobuf envelope', () => {
  it.each(PROTOBUF_SAMPLES)('decodes the envelope of kubectl: $kind', ({ bytes, apiVersion, kind }) => {
    const envelope = decodeEnvelope(bytes)
    expect(envelope).toMatchObject({ apiVersion, kind })
    expect(encodeEnvelope(envelope)).toEqual(bytes)
  })

  it('accepts a missing kind and an empty message', () => {
    expect(decodeHex(`${MAGIC} 12 00`)).toEqual({ apiVersion: '', kind: '', raw: Buffer.alloc(0) })
    expect(decodeHex(`${MAGIC} 0a 04 0a 02 7631`)).toEqual({ apiVersion: 'v1', kind: '', raw: new Uint8Array() })
  })

  it.each([
    [
      'a body that is JSON',
      Buffer.from('{"kind":"Pod"}').toString('hex'),
      'does not begin with the magic bytes "k8s\\0"',
    ],
    ['a truncated body', '6b38', 'does not begin with'],
    ['only the magic bytes', MAGIC, 'the envelope is empty'],
    ['bytes after the end', `${MAGIC} 12 00 78 79`, 'the envelope has the unknown field 15'],
    ['a second object', `${MAGIC} 12 00 12 00`, 'the envelope has field 2 twice'],
    ['a compressed object', `${MAGIC} 12 00 1a 04 677a6970`, 'the envelope has contentEncoding "gzip"'],
    ['an object in another format', `${MAGIC} 22 02 7b7d`, 'the envelope has contentType "{}"'],
    ['a truncated object', `${MAGIC} 12 05 00`, 'has length 5, but only 1 bytes are left'],
  ])('rejects %s', (_, hex, message) => {
    expect(() => decodeHex(hex)).toThrow(ProtobufError)
    expect(() => decodeHex(hex)).toThrow(message)
  })
})
