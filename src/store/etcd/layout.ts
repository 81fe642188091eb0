// Where things are in etcd, below the prefix: `keys/` holds the store's keys, `about` says whose they are and when the
// store began, `tick` is written when only a new revision is wanted. Revisions of the store are etcd's, counted from
// the one that created `about`: a new store begins at 0 whatever etcd has seen before.

export interface Layout {
  readonly about: Uint8Array
  readonly tick: Uint8Array
  /** Everything of this store: from `start` up to, not including, `end`. */
  readonly all: KeySpan
  readonly keys: KeySpan
  etcdKey(key: string): Uint8Array
  /** The store's key, or nothing for `about` and `tick`. */
  storeKey(etcdKey: Uint8Array): string | undefined
}

export interface KeySpan {
  readonly start: Uint8Array
  readonly end: Uint8Array
}

export const ABOUT = { store: 'stowage', format: 1 }

export function layoutOf(prefix: string): Layout {
  const root = `${prefix.replace(/\/+$/, '')}/`
  const keys = `${root}keys/`
  const keysBytes = Buffer.byteLength(keys)
  const keysText = Buffer.from(keys)
  return {
    about: Buffer.from(`${root}about`),
    tick: Buffer.from(`${root}tick`),
    all: spanOf(root),
    keys: spanOf(keys),
    etcdKey: (key) => Buffer.from(keys + key),
    storeKey(etcdKey) {
      const bytes = Buffer.from(etcdKey.buffer, etcdKey.byteOffset, etcdKey.byteLength)
      if (bytes.length <= keysBytes || bytes.compare(keysText, 0, keysBytes, 0, keysBytes) !== 0) return undefined
      return bytes.toString('utf8', keysBytes)
    },
  }
}

/** `text` ends in a slash, so the end is the same text with the character after it. */
const spanOf = (text: string): KeySpan => ({ start: Buffer.from(text), end: Buffer.from(`${text.slice(0, -1)}0`) })
