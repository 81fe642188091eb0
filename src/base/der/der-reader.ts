// Decodes DER elements and object identifiers. der.ts encodes them.

export interface DerElement {
  readonly tag: number
  readonly content: Uint8Array
  /** The element with tag and length. */
  readonly encoding: Uint8Array
}

/** Throws an Error if the bytes are not a sequence of complete elements. */
export function readElements(bytes: Uint8Array): DerElement[] {
  const elements: DerElement[] = []
  for (let offset = 0; offset < bytes.length; ) {
    const element = readElementAt(bytes, offset)
    elements.push(element)
    offset += element.encoding.length
  }
  return elements
}

/** Throws an Error if the bytes are not exactly one element. */
export function readElement(bytes: Uint8Array): DerElement {
  const [element, ...furtherElements] = readElements(bytes)
  if (!element || furtherElements.length > 0) throw malformed()
  return element
}

const LENGTH_BYTES_MAX = 4

function readElementAt(bytes: Uint8Array, start: number): DerElement {
  const tag = bytes[start]
  const firstLengthByte = bytes[start + 1]
  if (tag === undefined || firstLengthByte === undefined) throw malformed()
  let contentStart = start + 2
  let length = firstLengthByte
  if (firstLengthByte >= 0x80) {
    const lengthByteCount = firstLengthByte & 0x7f
    if (lengthByteCount === 0 || lengthByteCount > LENGTH_BYTES_MAX) throw malformed()
    length = 0
    for (let i = 0; i < lengthByteCount; i++) length = length * 256 + (bytes[contentStart++] ?? 0)
  }
  const end = contentStart + length
  if (end > bytes.length) throw malformed()
  return { tag, content: bytes.subarray(contentStart, end), encoding: bytes.subarray(start, end) }
}

/** Decodes the content of an object identifier to a text such as `2.5.4.3`. */
export function readObjectId(content: Uint8Array): string {
  const arcs: number[] = []
  let arc = 0
  for (const byte of content) {
    arc = arc * 128 + (byte & 0x7f)
    if (byte & 0x80) continue
    if (arcs.length > 0) arcs.push(arc)
    else {
      const firstArc = Math.min(Math.floor(arc / 40), 2)
      arcs.push(firstArc, arc - firstArc * 40)
    }
    arc = 0
  }
  return arcs.join('.')
}

const malformed = () => new Error('malformed DER')
