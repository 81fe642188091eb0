// Encodes the ASN.1 types of a certificate in DER, one function per type. Pure.
// certificate.ts composes them; node:crypto parses certificates.
import { isIPv4 } from 'node:net'

export const sequence = (...parts: Uint8Array[]) => element(0x30, ...parts)
export const set = (...parts: Uint8Array[]) => element(0x31, ...parts)
export const octetString = (...parts: Uint8Array[]) => element(0x04, ...parts)
export const utf8String = (text: string) => element(0x0c, Buffer.from(text, 'utf8'))
export const TRUE = element(0x01, Uint8Array.of(0xff))

/** `[tag]` around whole elements, as in `[0] EXPLICIT Version`. */
export const explicit = (tag: number, ...parts: Uint8Array[]) => element(0xa0 | tag, ...parts)
/** `[tag]` in place of a plain string's own tag, as in `[2] IMPLICIT IA5String`. */
export const implicit = (tag: number, content: Uint8Array) => element(0x80 | tag, content)

/** A non-negative integer from its big-endian bytes, with a leading zero only where it would else be negative. */
export function integer(bigEndian: Uint8Array): Uint8Array {
  let start = 0
  while (start < bigEndian.length - 1 && bigEndian[start] === 0) start++
  const digits = bigEndian.subarray(start)
  return (digits[0] ?? 0) & 0x80 ? element(0x02, Uint8Array.of(0), digits) : element(0x02, digits)
}

export const bitString = (bits: Uint8Array, unusedBits = 0) => element(0x03, Uint8Array.of(unusedBits), bits)

/** `objectId('1.2.840.10045.4.3.2')`: the first two arcs share a byte, the rest are base 128. */
export function objectId(dotted: string): Uint8Array {
  const [first = 0, second = 0, ...rest] = dotted.split('.').map(Number)
  return element(0x06, Uint8Array.from([first * 40 + second, ...rest].flatMap(base128)))
}

/** Whole seconds, in the form of RFC 5280: two-digit years until 2049, four-digit ones after. */
export function time(ms: number): Uint8Array {
  const digits = `${new Date(ms).toISOString().slice(0, 19).replace(/[-:T]/g, '')}Z`
  const year = Number(digits.slice(0, 4))
  return year >= 1950 && year < 2050
    ? element(0x17, Buffer.from(digits.slice(2), 'ascii'))
    : element(0x18, Buffer.from(digits, 'ascii'))
}

/** The 4 or 16 bytes of an address that `net.isIP` accepts (without a zone). */
export function ipAddressBytes(address: string): Uint8Array {
  if (isIPv4(address)) return Uint8Array.from(address.split('.').map(Number))
  const [head = '', tail] = address.split('::')
  const front = groupBytes(head)
  const back = tail === undefined ? [] : groupBytes(tail)
  return Uint8Array.from([...front, ...Array<number>(16 - front.length - back.length).fill(0), ...back])
}

/** `fe80:0:1.2.3.4` as bytes: two for each group, and four for a dotted end. */
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
  for (let rest = Math.floor(arc / 128); rest > 0; rest = Math.floor(rest / 128)) digits.unshift((rest % 128) | 0x80)
  return digits
}

function element(tag: number, ...parts: Uint8Array[]): Uint8Array {
  const content = Buffer.concat(parts)
  return Buffer.concat([Uint8Array.of(tag, ...lengthBytes(content.length)), content])
}

/** Below 128 the length is itself; above, a count of bytes and then the bytes. */
function lengthBytes(length: number): number[] {
  if (length < 128) return [length]
  const bytes: number[] = []
  for (let rest = length; rest > 0; rest = Math.floor(rest / 256)) bytes.unshift(rest % 256)
  return [0x80 | bytes.length, ...bytes]
}
