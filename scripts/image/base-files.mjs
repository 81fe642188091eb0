// Copies the base of the image from this machine: Node.js, a shell, the programs that `stowage driver` and `stowage node` call,
// and the shared libraries of all of them. The Dockerfile gets them from its base image and from packages.
import { execFile } from 'node:child_process'
import { cp, mkdir, realpath, symlink, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { promisify } from 'node:util'

/** The programs that `stowage driver` and `stowage node` call. Missing ones are omitted, because servers do not need them. */
const STORAGE_PROGRAMS = [
  ...['blkid', 'blockdev', 'fallocate', 'fsfreeze', 'losetup', 'mount', 'mountpoint', 'umount', 'unshare'],
  ...['e2fsck', 'filefrag', 'mkfs.ext4', 'resize2fs', 'tune2fs'],
  ...['mkfs.xfs', 'xfs_admin', 'xfs_growfs', 'xfs_io', 'xfs_repair'],
  'cp',
]
/** Folders that are links to their counterparts in /usr, as in Debian. */
const LINKED_FOLDERS = ['bin', 'sbin', 'lib', 'lib64']
const EMPTY_FOLDERS = ['dev', 'etc', 'opt', 'proc', 'root', 'run', 'sys', 'var/lib']
const USER_LINES = ['root:x:0:0:root:/root:/bin/sh', 'stowage:x:65532:65532:stowage:/var/lib/stowage:/sbin/nologin']
const GROUP_LINES = ['root:x:0:', 'stowage:x:65532:']

/**
 * Copies the base to the folder `root`, with the libraries of the files in `nativeModules`. Returns the names of the storage
 * programs that this machine lacks.
 */
export async function copyBaseFiles(root, nativeModules) {
  for (const folder of EMPTY_FOLDERS) await mkdir(join(root, folder), { recursive: true })
  for (const folder of LINKED_FOLDERS) {
    await mkdir(join(root, 'usr', folder), { recursive: true })
    await symlink(join('usr', folder), join(root, folder))
  }
  await mkdir(join(root, 'tmp'), { mode: 0o1777 })
  await writeFile(join(root, 'etc', 'passwd'), `${USER_LINES.join('\n')}\n`)
  await writeFile(join(root, 'etc', 'group'), `${GROUP_LINES.join('\n')}\n`)

  const found = await Promise.all(STORAGE_PROGRAMS.map(async (name) => ({ name, path: await findProgram(name) })))
  const programs = found.flatMap(({ path }) => path ?? [])
  const copies = [
    { from: process.execPath, to: '/usr/local/bin/node' },
    { from: '/bin/sh', to: '/usr/bin/sh' },
    ...programs.map((path) => ({ from: path, to: withUsr(path) })),
  ]
  for (const { from, to } of copies) await copyFile(from, join(root, to))
  const libraries = await Promise.all([...copies.map(({ from }) => from), ...nativeModules].map(listLibraries))
  for (const path of new Set(libraries.flat())) await copyFile(path, join(root, withUsr(path)))
  return found.filter(({ path }) => path === undefined).map(({ name }) => name)
}

/** Copies a file's content, even if the path is a link to it. */
async function copyFile(from, to) {
  await mkdir(dirname(to), { recursive: true })
  await cp(await realpath(from), to)
}

async function findProgram(name) {
  const path = `${process.env.PATH}:/usr/sbin:/sbin`
  const result = await promisify(execFile)('/bin/sh', ['-c', 'command -v "$1"', 'sh', name], {
    env: { ...process.env, PATH: path },
  }).catch(() => undefined)
  return result?.stdout.trim() || undefined
}

const withUsr = (path) => (/^\/(bin|sbin|lib|lib64)\//.test(path) ? `/usr${path}` : path)

/** Returns the libraries that the dynamic linker loads for a file: none for a script or a static program. */
async function listLibraries(file) {
  const { stdout } = await promisify(execFile)('ldd', [file]).catch(() => ({ stdout: '' }))
  return [...stdout.matchAll(/(\/\S+) \(0x/g)].map(([, path]) => path)
}
