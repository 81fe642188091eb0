// Where things are in etcd, below the prefix: `keys/` holds the store's keys, `about` says whose they are and when the
// store began, `tick` is written when only a new revision is wanted, `group` says how many places the revision that
// wrote it has, and `place/N` comes before a delete whose place is N (group.ts).

export interface Layout {
  readonly about: Uint8Array
  readonly tick: Uint8Array
  readonly group: Uint8Array
  /** Everything of this store: from `start` up to, not including, `end`. */
  readonly all: KeySpan
  readonly keys: KeySpan
  etcdKey(key: string): Uint8Array
  placeKey(place: number): Uint8Array
  /** The store's key, or nothing for a key that is not below `keys/`. */
  storeKey(etcdKey: Uint8Array): string | undefined
  /** The number of a place key, or nothing for any other. */
  placeOf(etcdKey: Uint8Array): number | undefined
}

export interface KeySpan {
  readonly start: Uint8Array
  readonly end: Uint8Array
}

export const ABOUT = { store: 'stowage', format: 3 }

export function layoutOf(prefix: string): Layout {
  const root = `${prefix.replace(/\/+$/, '')}/`
  const keys = `${root}keys/`
  const places = `${root}place/`
  const nameBelow = (parent: string) => {
    const parentBytes = Buffer.from(parent)
    return (etcdKey: Uint8Array): string | undefined => {
      const bytes = Buffer.from(etcdKey.buffer, etcdKey.byteOffset, etcdKey.byteLength)
      const { length } = parentBytes
      if (bytes.length <= length || bytes.compare(parentBytes, 0, length, 0, length) !== 0) return undefined
      return bytes.toString('utf8', length)
    }
  }
  const placeName = nameBelow(places)
  return {
    about: Buffer.from(`${root}about`),
    tick: Buffer.from(`${root}tick`),
    group: Buffer.from(`${root}group`),
    all: spanOf(root),
    keys: spanOf(keys),
    etcdKey: (key) => Buffer.from(keys + key),
    placeKey: (place) => Buffer.from(`${places}${place}`),
    storeKey: nameBelow(keys),
    placeOf(etcdKey) {
      const name = placeName(etcdKey)
      return name === undefined ? undefined : Number(name)
    },
  }
}

/** `text` ends in a slash, so the end is the same text with the character after it. */
const spanOf = (text: string): KeySpan => ({ start: Buffer.from(text), end: Buffer.from(`${text.slice(0, -1)}0`) })
