// The layout of the store in etcd. Below the prefix:
//   keys/…    the keys of the store
//   about     the format; its creation revision is the store's revision 0 (revision-mapping.ts)
//   tick      written only to create a new etcd revision
//   group     the number of writes in the etcd revision that wrote it (group.ts)
//   place/N   marker before a delete with sub-revision N (group.ts)

export interface Layout {
  readonly about: Uint8Array
  readonly tick: Uint8Array
  readonly group: Uint8Array
  /** The range of all etcd keys below the prefix, from `start` up to but not including `end`. */
  readonly allKeys: KeySpan
  readonly keys: KeySpan
  etcdKey(key: string): Uint8Array
  subKey(sub: number): Uint8Array
  /** Returns the key of the store, or undefined for an etcd key that is not below `keys/`. */
  storeKey(etcdKey: Uint8Array): string | undefined
  /** Returns the sub-revision of a marker key, or undefined for any other etcd key. */
  subOf(etcdKey: Uint8Array): number | undefined
}

export interface KeySpan {
  readonly start: Uint8Array
  readonly end: Uint8Array
}

export const STORE = 'stowage'
/** The format of new stores. Their values have checksums. */
export const FORMAT = 4
/** The format of stores that versions before 0.2.0 have created and can use. */
export const FORMAT_WITHOUT_CHECKSUMS = 3

export function layoutOf(prefix: string): Layout {
  const root = `${prefix.replace(/\/+$/, '')}/`
  const keys = `${root}keys/`
  const subPrefix = `${root}place/`
  const nameBelow = (parent: string) => {
    const parentBytes = Buffer.from(parent)
    return (etcdKey: Uint8Array): string | undefined => {
      const bytes = Buffer.from(etcdKey.buffer, etcdKey.byteOffset, etcdKey.byteLength)
      const { length } = parentBytes
      if (bytes.length <= length || bytes.compare(parentBytes, 0, length, 0, length) !== 0) return undefined
      return bytes.toString('utf8', length)
    }
  }
  const subName = nameBelow(subPrefix)
  return {
    about: Buffer.from(`${root}about`),
    tick: Buffer.from(`${root}tick`),
    group: Buffer.from(`${root}group`),
    allKeys: spanOf(root),
    keys: spanOf(keys),
    etcdKey: (key) => Buffer.from(keys + key),
    subKey: (sub) => Buffer.from(`${subPrefix}${sub}`),
    storeKey: nameBelow(keys),
    subOf(etcdKey) {
      const name = subName(etcdKey)
      return name === undefined ? undefined : Number(name)
    },
  }
}

/** Returns the range of the keys below `parent`, which ends in a slash. The range ends at '0', the character after '/'. */
const spanOf = (parent: string): KeySpan => ({
  start: Buffer.from(parent),
  end: Buffer.from(`${parent.slice(0, -1)}0`),
})
