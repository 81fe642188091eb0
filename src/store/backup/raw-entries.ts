// Opens an LMDB store for backup and restore, with names and values as undecoded bytes, so that an archive preserves the
// entries of every store format. Only the layout of a name is known here: one byte of record kind and six bytes of revision.
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

export const DESCRIPTION_NAME = encodeName(DESCRIPTION, 0)
export const HEADERS_START = encodeName(HEADER, 0)
export const VALUES_START = encodeName(VALUE, 0)

/** The name of the entry in which a restore records the archives and frames that it has applied to the new store. */
export const PROGRESS_NAME = encodeName(DESCRIPTION, 1)
