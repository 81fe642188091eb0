// Encodes the ASN.1 types of a certificate in DER.
import { isIPv4 } from 'node:net'

export const sequence = (...parts: Uint8Array[]) => element(0x30, ...parts)
export const set = (...parts: Uint8Array[]) => element(0x31, ...parts)
export const octetString = (...parts: Uint8Array[]) => element(0x04, ...parts)
export const utf8String = (text: string) => element(0x0c, Buffer.from(text, 'utf8'))
export const TRUE = element(0x01, Uint8Array.of(0xff))

/** Encodes elements inside an explicit tag, as in `[0] EXPLICIT Version`. */
export const explicit = (tag: number, ...parts: Uint8Array[]) => element(0xa0 | tag, ...parts)
/** Encodes content with an implicit tag, as in `[2] IMPLICIT IA5String`. */
export const implicit = (tag: number, content: Uint8Array) => element(0x80 | tag, content)

/** Encodes a non-negative integer from big-endian bytes. */
export function integer(bigEndian: Uint8Array): Uint8Array {
  let start = 0
  while (start < bigEndian.length - 1 && bigEndian[start] === 0) start++
  const digits = bigEndian.subarray(start)
  return (digits[0] ?? 0) & 0x80 ? element(0x02, Uint8Array.of(0), digits) : element(0x02, digits)
}

export const bitString = (bits: Uint8Array, unusedBits = 0) => element(0x03, Uint8Array.of(unusedBits), bits)

/** Encodes an object identifier such as `1.2.840.10045.4.3.2`. */
export function objectId(dotted: string): Uint8Array {
  const [firstArc = 0, secondArc = 0, ...furtherArcs] = dotted.split('.').map(Number)
  return element(0x06, Uint8Array.from([firstArc * 40 + secondArc, ...furtherArcs].flatMap(base128)))
}

/** Encodes a time in whole seconds, as in RFC 5280: with a two-digit year from 1950 to 2049, otherwise with four digits. */
export function time(ms: number): Uint8Array {
  const digits = `${new Date(ms).toISOString().slice(0, 19).replace(/[-:T]/g, '')}Z`
  const year = Number(digits.slice(0, 4))
  return year >= 1950 && year < 2050
    ? element(0x17, Buffer.from(digits.slice(2), 'ascii'))
    : element(0x18, Buffer.from(digits, 'ascii'))
}

/** Returns the 4 or 16 bytes of an IP address without a zone. */
export function ipAddressBytes(address: string): Uint8Array {
  if (isIPv4(address)) return Uint8Array.from(address.split('.').map(Number))
  const [head = '', tail] = address.split('::')
  const headBytes = groupBytes(head)
  const tailBytes = tail === undefined ? [] : groupBytes(tail)
  return Uint8Array.from([
    ...headBytes,
    ...Array<number>(16 - headBytes.length - tailBytes.length).fill(0),
    ...tailBytes,
  ])
}

/** Returns the bytes of groups such as `fe80:0:1.2.3.4`: two for each group, and four for a dotted end. */
const groupBytes = (groups: string) =>
  groups
    .split(':')
    .filter((group) => group !== '')
    .flatMap((group) =>
      group.includes('.')
        ? group.split('.').map(Number)
        : [Number.parseInt(group, 16) >> 8, Number.parseInt(group, 16) & 255],
    )

function base128(arc: number): number[] {
  const digits = [arc % 128]
  for (let remainder = Math.floor(arc / 128); remainder > 0; remainder = Math.floor(remainder / 128))
    digits.unshift((remainder % 128) | 0x80)
  return digits
}

function element(tag: number, ...parts: Uint8Array[]): Uint8Array {
  const content = Buffer.concat(parts)
  return Buffer.concat([Uint8Array.of(tag, ...lengthBytes(content.length)), content])
}

/** Encodes a length below 128 as one byte, and a greater length as the number of its bytes followed by the bytes. */
function lengthBytes(length: number): number[] {
  if (length < 128) return [length]
  const bytes: number[] = []
  for (let remainder = length; remainder > 0; remainder = Math.floor(remainder / 256)) bytes.unshift(remainder % 256)
  return [0x80 | bytes.length, ...bytes]
}
