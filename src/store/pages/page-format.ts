// Decodes the pages of an LMDB file (the format of the `lmdb` package). Integers are little-endian; pointers and bounds of
// nodes are relative to the end of the page header.
//
//   page      number (8), transaction (8), - (2), flags (2), lower bound (2), upper bound (2) | pointers to nodes (2 each) …
//             nodes are packed from the end of the page down to the upper bound, each padded to an even size
//   overflow  number (8), transaction (8), - (2), flags (2), page count (4) | data, which continues on the following pages
//   meta      a page, then: magic (4), version (4), - (8), map size (8), free tree (48), main tree (48), last page (8),
//             transaction (8)
//   tree      page size (4, free tree only), flags (2), depth (2), branch pages (8), leaf pages (8), overflow pages (8),
//             entries (8), root page (8)
//   node      in a branch: child page (6), key length (2), key
//             in a leaf: data length (4), flags (2), key length (2), key, data; big data: first page (8), - (8), pages (8)

export const PAGE_HEADER_BYTES = 24
export const META_BYTES = PAGE_HEADER_BYTES + 136
export const NODE_HEADER_BYTES = 8
export const BIG_DATA_BYTES = 24
const NO_PAGE = 2n ** 64n - 1n

export const PAGE_BRANCH = 1
export const PAGE_LEAF = 2
export const PAGE_OVERFLOW = 4
export const NODE_HAS_BIG_DATA = 1

const MAGIC = 0xbeefc0de
const VERSION = 2

export interface TreeMeta {
  readonly flags: number
  readonly depth: number
  readonly branchPages: number
  readonly leafPages: number
  readonly overflowPages: number
  readonly entries: number
  /** Undefined for an empty tree. */
  readonly root: number | undefined
}

export interface Meta {
  readonly isMeta: boolean
  readonly version: number
  readonly isKnownVersion: boolean
  readonly pageBytes: number
  readonly mapBytes: number
  readonly lastPage: number
  readonly transaction: number
  readonly freeTree: TreeMeta
  readonly mainTree: TreeMeta
}

/** Decodes a meta page, of which only the first META_BYTES are needed. */
export function decodeMeta(page: Buffer): Meta {
  const meta = page.subarray(PAGE_HEADER_BYTES)
  return {
    isMeta: meta.readUInt32LE(0) === MAGIC,
    version: meta.readUInt32LE(4) & 0xffff,
    isKnownVersion: (meta.readUInt32LE(4) & 0xffff) === VERSION,
    pageBytes: meta.readUInt32LE(24),
    mapBytes: readNumber(meta, 16),
    lastPage: readNumber(meta, 120),
    transaction: readNumber(meta, 128),
    freeTree: decodeTree(meta.subarray(24)),
    mainTree: decodeTree(meta.subarray(72)),
  }
}

function decodeTree(tree: Buffer): TreeMeta {
  return {
    flags: tree.readUInt16LE(4),
    depth: tree.readUInt16LE(6),
    branchPages: readNumber(tree, 8),
    leafPages: readNumber(tree, 16),
    overflowPages: readNumber(tree, 24),
    entries: readNumber(tree, 32),
    root: tree.readBigUInt64LE(40) === NO_PAGE ? undefined : readNumber(tree, 40),
  }
}

/** Reads 8 bytes as a number. The result is imprecise above 2^53, which no valid field reaches. */
export const readNumber = (bytes: Buffer, offset: number): number =>
  bytes.readUInt32LE(offset) + bytes.readUInt32LE(offset + 4) * 2 ** 32
