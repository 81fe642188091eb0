// Recognizes a data directory, and deletes what Stowage created in it except for volumes that are kept. The store is
// deleted after the volumes, so that a repeated reset can still read from it which volumes to keep.
import { access, readdir, rmdir } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'
import { removeTree } from '../../../base/trees/remove-tree.ts'
import { snapshotsIn, stateIn, volumesIn } from '../../../driver/pool/pool-layout.ts'
import { SERVER_RECORD_FILE } from '../../../processes/server/server-record.ts'
import { CONTEXTS_FILE } from '../kubeconfig/merge.ts'

/** Entries of a data directory other than nodes/, volumes/ and volumes.id, in the order in which they are deleted. */
const FILE_NAMES = ['audit', 'admin.kubeconfig', CONTEXTS_FILE, 'pki', 'store', SERVER_RECORD_FILE]

/** Each of these paths shows that a directory is a data directory. */
const MARKS = ['store/store.mdb', 'pki/ca.crt', 'admin.kubeconfig', 'volumes.id', SERVER_RECORD_FILE]
const NODE_MARKS = ['agent/pods', 'agent/plugins', 'pool/.stowage']

export async function isDataDirectory(dataDir: string): Promise<boolean> {
  const nodes = await listNames(join(dataDir, 'nodes'))
  const nodeMarks = nodes.flatMap((node) => NODE_MARKS.map((mark) => join('nodes', node, mark)))
  const marks = await Promise.all([...MARKS, ...nodeMarks].map((mark) => exists(join(dataDir, mark))))
  return marks.includes(true)
}

/** Returns the entries of the directory that Stowage did not create. */
export async function findForeignEntries(dataDir: string): Promise<string[]> {
  const ownNames = new Set([...FILE_NAMES, 'nodes', 'volumes', 'volumes.id'])
  return (await listNames(dataDir)).filter((name) => !ownNames.has(name.replace(/\.tmp$/, '')))
}

/** Deletes the data except the kept volumes. The caller has checked that nothing is mounted in the directory. */
export async function deleteData(dataDir: string, keptPaths: ReadonlySet<string>): Promise<void> {
  const nodesDir = join(dataDir, 'nodes')
  for (const node of await listNames(nodesDir)) await deleteNode(join(nodesDir, node), keptPaths)
  await removeIfEmpty(nodesDir)

  const volumesDir = join(dataDir, 'volumes')
  if (hasKeptVolumes(volumesDir, keptPaths)) {
    // The mark identifies the directory to the next server, together with volumes.id.
    await deleteEntries(volumesDir, (path) => !keptPaths.has(path) && basename(path) !== '.stowage-volumes')
  } else for (const name of ['volumes', 'volumes.id']) await removeTree(join(dataDir, name))

  for (const name of FILE_NAMES) {
    await removeTree(join(dataDir, `${name}.tmp`))
    await removeTree(join(dataDir, name))
  }
  await removeIfEmpty(dataDir)
}

async function deleteNode(nodeDir: string, keptPaths: ReadonlySet<string>): Promise<void> {
  const pool = join(nodeDir, 'pool')
  await deletePoolContent(pool, keptPaths)
  if (hasKeptVolumes(pool, keptPaths)) await deleteEntries(nodeDir, (path) => path !== pool)
  else await removeTree(nodeDir)
}

/**
 * Deletes the volumes and snapshots of the pool with their records, except the kept volumes. Records are deleted after
 * the volumes, so that a repeated reset can still read from them which volumes have no data.
 */
async function deletePoolContent(pool: string, keptPaths: ReadonlySet<string>): Promise<void> {
  const keptIds = new Set([...keptPaths].filter((path) => dirname(path) === volumesIn(pool)).map(idOf))
  const state = stateIn(pool)
  await deleteEntries(volumesIn(pool), (path) => !keptPaths.has(path))
  await deleteEntries(snapshotsIn(pool), () => true)
  await deleteEntries(join(state, 'volumes'), (path) => !keptIds.has(idOf(path)))
  for (const name of ['snapshots', 'presences', 'scratch']) await deleteEntries(join(state, name), () => true)
  await deleteEntries(pool, (path) => basename(path).startsWith('.stowage-probe-'))
}

const idOf = (path: string): string => basename(path).replace(/\.(img|json)$/, '')

const hasKeptVolumes = (dir: string, keptPaths: ReadonlySet<string>): boolean =>
  [...keptPaths].some((path) => path.startsWith(`${dir}/`))

async function deleteEntries(dir: string, shouldDelete: (path: string) => boolean): Promise<void> {
  const paths = (await listNames(dir)).map((name) => join(dir, name))
  for (const path of paths.filter(shouldDelete)) await removeTree(path)
}

/** Keeps a directory that has entries, is a mount point, or is in a directory that this user may not change. */
async function removeIfEmpty(dir: string): Promise<void> {
  await rmdir(dir).catch((error: NodeJS.ErrnoException) => {
    if (!['ENOENT', 'ENOTEMPTY', 'EEXIST', 'EBUSY', 'EACCES', 'EPERM'].includes(error.code ?? '')) throw error
  })
}

export const listNames = (dir: string): Promise<string[]> =>
  readdir(dir).catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT' || error.code === 'ENOTDIR') return []
    throw error
  })

const exists = (path: string): Promise<boolean> =>
  access(path).then(
    () => true,
    () => false,
  )
