// Opens an LMDB store as raw entries, names and values as bytes, for backups: an archive preserves the entries of every store
// format. Only the layout of names is known here: kind (1) and revision (6).
import { open as openLmdb, type RootDatabase } from 'lmdb'
import { silenceLmdbErrors } from '../lmdb-console.ts'
import { DESCRIPTION, HEADER, VALUE, writeName } from '../records/record-codec.ts'

export type RawDb = RootDatabase<Buffer, Buffer>

export function openRawDb(path: string, { isReadOnly }: { readonly isReadOnly: boolean }): RawDb {
  silenceLmdbErrors()
  return openLmdb({
    path,
    noSubdir: true,
    readOnly: isReadOnly,
    encoding: 'binary',
    keyEncoding: 'binary',
    maxDbs: 1,
    overlappingSync: false,
  })
}

export function encodeName(kind: number, revision: number): Buffer {
  const name = Buffer.alloc(7)
  writeName([kind, revision], name, 0)
  return name
}

export const revisionOf = (name: Uint8Array): number => Buffer.from(name).readUIntBE(1, 6)

export const DESCRIPTION_ENTRY = encodeName(DESCRIPTION, 0)
export const HEADERS_START = encodeName(HEADER, 0)
export const VALUES_START = encodeName(VALUE, 0)

/** The entry that a restore writes to the new store to record the archives and frames that it has applied. */
export const PROGRESS_ENTRY = encodeName(DESCRIPTION, 1)
