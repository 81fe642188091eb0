// What this machine lets us do, found by trying it on small files in the pool, with the reason for every no. The
// answers choose the backend, and end up in the plugin's manifest, the metrics and the list of tests that may be skipped.
import { constants } from 'node:fs'
import { access, copyFile, mkdir, mkdtemp, readdir, readFile, rm, stat, statfs, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { Clock } from '../base/clock.ts'
import { MissingToolError } from './errors.ts'
import { createFiles } from './files.ts'
import { createFilesystems, minimumBytes } from './filesystems.ts'
import type { Loops, Mounts } from './host.ts'
import { type Ability, FILESYSTEM_TYPES, type Files, type Filesystems, type FilesystemType } from './host.ts'
import { findLimits, type LimitsFound } from './limits/open-limits.ts'
import { createLoops } from './loops.ts'
import { createMounts } from './mounts.ts'
import { createRun, searchPath } from './run.ts'

export const TOOLS = [
  'mkfs.xfs',
  'mkfs.ext4',
  'xfs_growfs',
  'resize2fs',
  'blkid',
  'e2fsck',
  'fsfreeze',
  'xfs_admin',
  'losetup',
] as const
export type Tool = (typeof TOOLS)[number]

export interface HostFacts {
  readonly isRoot: boolean
  /** Effective capabilities: mounting and loops need the first, growing a mounted ext4 the second as well. */
  readonly capabilities: { readonly sysAdmin: boolean; readonly sysResource: boolean }
  /** A loop device can be attached and detached. */
  readonly canLoop: Ability
  /** A file system of at least one type can be made on it and mounted. */
  readonly canMount: Ability
  readonly filesystems: Readonly<Record<FilesystemType, Ability>>
  readonly tools: Readonly<Record<Tool, Ability>>
  /** Copies in the pool can share blocks with their originals. */
  readonly canReflink: Ability
  readonly canGrowExt4Online: Ability
  readonly limits: LimitsFound
}

export interface ProbeOptions {
  readonly poolDir: string
  readonly clock: Clock
}

const PROBE_PREFIX = '.stowage-probe-'

/** What a file system of the smallest size writes when it is made, several times over. */
const PROBE_NEEDS_BYTES = 256 * 1024 * 1024

/** Where loops and file systems are tried when the pool has no room for that: what is asked is about the machine. */
const MEMORY_DIR = '/dev/shm'

export async function probeHost({ poolDir, clock }: ProbeOptions): Promise<HostFacts> {
  const run = createRun({ clock })
  const mounts = createMounts({ run })
  const loops = createLoops({ run, clock, mounts, clearLimits: async () => {} })
  const trial = { files: createFiles({ run }), loops, mounts, filesystems: createFilesystems({ run, mounts }) }

  await mkdir(poolDir, { recursive: true })
  const place = await placeToTry(poolDir)
  await removeLeftovers(poolDir, PROBE_PREFIX, trial)
  await removeLeftovers(place.parent, place.prefix, trial)
  const dir = await mkdtemp(join(place.parent, place.prefix))
  try {
    const capabilities = parseCapabilities(await readFile('/proc/self/status', 'utf8'))
    const canLoop = explainRights(await attempt(() => tryLoop(join(dir, 'loop'), trial)), capabilities)
    const filesystems = await tryFilesystems(dir, canLoop, trial)
    if (!place.isPool && canLoop.yes) await assumeWhatToolsPromise(filesystems)
    return {
      isRoot: process.getuid?.() === 0,
      capabilities,
      canLoop,
      canMount: anyOf(Object.values(filesystems)),
      filesystems,
      tools: await findTools(),
      canReflink: place.isPool ? await tryReflink(dir, poolDir) : no(`${poolDir} was too full to try`),
      canGrowExt4Online: capabilities.sysResource ? YES : no(NO_SYS_RESOURCE),
      limits: await findLimits(),
    }
  } finally {
    await removeLeftovers(place.parent, place.prefix, trial)
  }
}

/** A full pool must not keep its driver from starting: deleting volumes is what makes room. */
async function placeToTry(poolDir: string): Promise<{ parent: string; prefix: string; isPool: boolean }> {
  const { bavail, bsize } = await statfs(poolDir)
  if (bavail * bsize >= PROBE_NEEDS_BYTES) return { parent: poolDir, prefix: PROBE_PREFIX, isPool: true }
  const { dev, ino } = await stat(poolDir) // others may be probing here, for pools of their own
  const isThere = await access(MEMORY_DIR, constants.W_OK).then(
    () => true,
    () => false,
  )
  if (isThere) return { parent: MEMORY_DIR, prefix: `${PROBE_PREFIX}${dev}-${ino}-`, isPool: false }
  return { parent: poolDir, prefix: PROBE_PREFIX, isPool: true }
}

interface Trial {
  readonly files: Files
  readonly loops: Loops
  readonly mounts: Mounts
  readonly filesystems: Filesystems
}

const TRIAL_LOOP_BYTES = 1024 * 1024

async function tryLoop(file: string, { files, loops }: Trial): Promise<void> {
  await files.extend(file, TRIAL_LOOP_BYTES)
  await loops.detach(await loops.attach(file), { file })
}

/** A refusal for want of rights says so in words rather than as the complaint of a program. */
function explainRights(ability: Ability, { sysAdmin }: HostFacts['capabilities']): Ability {
  if (ability.yes || sysAdmin) return ability
  return no('the driver does not have CAP_SYS_ADMIN, which loop devices and mounts need; run it as root')
}

async function tryFilesystems(dir: string, canLoop: Ability, trial: Trial): Promise<Record<FilesystemType, Ability>> {
  const found = {} as Record<FilesystemType, Ability>
  for (const type of FILESYSTEM_TYPES) {
    found[type] = canLoop.yes ? await attempt(() => tryFilesystem(dir, type, trial)) : no(canLoop.because)
  }
  return found
}

/** A trial that had no room says nothing; the volumes that fill the pool say that it worked before. */
async function assumeWhatToolsPromise(found: Record<FilesystemType, Ability>): Promise<void> {
  for (const type of FILESYSTEM_TYPES) if (!found[type].yes && (await isOnPath(`mkfs.${type}`))) found[type] = YES
}

async function tryFilesystem(dir: string, type: FilesystemType, trial: Trial): Promise<void> {
  const file = join(dir, type)
  const mountpoint = join(dir, `${type}-mounted`)
  await trial.files.extend(file, minimumBytes(type))
  const device = await trial.loops.attach(file)
  try {
    await trial.filesystems.make(device, type, { keepReservation: false })
    await mkdir(mountpoint)
    await trial.mounts.mount(device, mountpoint, type)
  } finally {
    await trial.mounts.unmount(mountpoint)
    await trial.loops.detach(device, { file })
  }
}

async function tryReflink(dir: string, poolDir: string): Promise<Ability> {
  const original = join(dir, 'original')
  await writeFile(original, 'shared')
  try {
    await copyFile(original, join(dir, 'copy'), constants.COPYFILE_FICLONE_FORCE)
    return YES
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    return no(`the file system of ${poolDir} cannot share blocks between files (${code}); xfs and btrfs can`)
  }
}

async function findTools(): Promise<Readonly<Record<Tool, Ability>>> {
  const found = {} as Record<Tool, Ability>
  for (const tool of TOOLS) found[tool] = (await isOnPath(tool)) ? YES : no(new MissingToolError(tool).message)
  return found
}

async function isOnPath(program: string): Promise<boolean> {
  for (const directory of searchPath().split(':')) {
    const isThere = await access(join(directory, program), constants.X_OK).then(
      () => true,
      () => false,
    )
    if (isThere) return true
  }
  return false
}

/** Also what a probe that was killed half way left: its mounts, its devices, its files. */
async function removeLeftovers(parent: string, prefix: string, { loops, mounts }: Trial): Promise<void> {
  const leftovers = (await readdir(parent)).filter((name) => name.startsWith(prefix))
  if (leftovers.length === 0) return
  const isOurs = (path: string) => leftovers.some((name) => path.includes(`/${name}/`))
  for (const { target } of await mounts.list()) if (isOurs(target)) await mounts.unmount(target)
  for (const { device, file } of await loops.list().catch(() => [])) {
    if (isOurs(file)) await loops.detach(device, { file })
  }
  for (const name of leftovers) await rm(join(parent, name), { recursive: true, force: true })
}

const CAP_SYS_ADMIN = 21n
const CAP_SYS_RESOURCE = 24n

export function parseCapabilities(status: string): HostFacts['capabilities'] {
  const effective = BigInt(`0x${/^CapEff:\s*([0-9a-f]+)/m.exec(status)?.[1] ?? '0'}`)
  const has = (bit: bigint) => (effective & (1n << bit)) !== 0n
  return { sysAdmin: has(CAP_SYS_ADMIN), sysResource: has(CAP_SYS_RESOURCE) }
}

const YES: Ability = { yes: true }
const no = (because: string): Ability => ({ yes: false, because })
const NO_SYS_RESOURCE = 'the driver does not have CAP_SYS_RESOURCE, which the kernel demands for growing a mounted ext4'

const anyOf = (abilities: readonly Ability[]): Ability => abilities.find((it) => it.yes) ?? abilities[0]!

async function attempt(work: () => Promise<void>): Promise<Ability> {
  try {
    await work()
    return YES
  } catch (error) {
    return no((error as Error).message)
  }
}
