// Detects the abilities of this node, most of them by trying them on small files, and removes what an interrupted probe has left.
// Each missing ability has a reason.
import { constants } from 'node:fs'
import { access, copyFile, mkdir, mkdtemp, readdir, readFile, rm, stat, statfs, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { Clock } from '../base/clock.ts'
import { MissingToolError } from './errors.ts'
import { createFiles } from './files.ts'
import { createFilesystems, minimumBytes } from './filesystems.ts'
import {
  type Ability,
  FILESYSTEM_TYPES,
  type Files,
  type Filesystems,
  type FilesystemType,
  type Loops,
  type Mounts,
} from './host.ts'
import { type DetectedLimits, detectLimits } from './limits/open-limits.ts'
import { createLoops } from './loops.ts'
import { createMounts } from './mounts.ts'
import { createRun, searchPath } from './run.ts'

const TOOLS = [
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
type Tool = (typeof TOOLS)[number]

export interface HostFacts {
  readonly isRoot: boolean
  /** Effective capabilities. Mounts and loop devices need CAP_SYS_ADMIN. Growing a mounted ext4 needs CAP_SYS_RESOURCE. */
  readonly capabilities: { readonly sysAdmin: boolean; readonly sysResource: boolean }
  /** Whether a loop device can be attached and detached. */
  readonly canLoop: Ability
  /** Whether at least one file system type can be formatted and mounted. */
  readonly canMount: Ability
  readonly filesystems: Readonly<Record<FilesystemType, Ability>>
  readonly tools: Readonly<Record<Tool, Ability>>
  /** Whether copies in the pool can share blocks with their originals. */
  readonly canReflink: Ability
  readonly canGrowExt4Online: Ability
  readonly limits: DetectedLimits
}

export interface ProbeOptions {
  readonly poolDir: string
  readonly clock: Clock
}

const PROBE_PREFIX = '.stowage-probe-'

/** If the pool has less free space, the probe uses MEMORY_DIR instead, unless that is not writable. */
const POOL_FREE_BYTES_MIN = 256 * 1024 * 1024

/** Used to probe loop devices and file systems if the pool is too full. These results do not depend on the pool. */
const MEMORY_DIR = '/dev/shm'

export async function probeHost({ poolDir, clock }: ProbeOptions): Promise<HostFacts> {
  const run = createRun({ clock })
  const mounts = createMounts({ run })
  const loops = createLoops({ run, clock, mounts, clearLimits: async () => {} })
  const tools = { files: createFiles({ run }), loops, mounts, filesystems: createFilesystems({ run, mounts }) }

  await mkdir(poolDir, { recursive: true })
  const location = await chooseLocation(poolDir)
  await removeLeftovers(poolDir, PROBE_PREFIX, tools)
  await removeLeftovers(location.parent, location.prefix, tools)
  const dir = await mkdtemp(join(location.parent, location.prefix))
  try {
    const capabilities = parseCapabilities(await readFile('/proc/self/status', 'utf8'))
    const canLoop = explainMissingCapability(await tryAbility(() => tryLoop(join(dir, 'loop'), tools)), capabilities)
    const filesystems = await tryFilesystems(dir, canLoop, tools)
    if (!location.isPool && canLoop.available) await assumeSupportedByTools(filesystems)
    return {
      isRoot: process.getuid?.() === 0,
      capabilities,
      canLoop,
      canMount: findFirstAvailable(Object.values(filesystems)),
      filesystems,
      tools: await findTools(),
      canReflink: location.isPool ? await tryReflink(dir, poolDir) : unavailable(`${poolDir} was too full to try`),
      canGrowExt4Online: capabilities.sysResource ? AVAILABLE : unavailable(NO_SYS_RESOURCE),
      limits: await detectLimits(),
    }
  } finally {
    await removeLeftovers(location.parent, location.prefix, tools)
  }
}

/** Returns a prefix that is unique for the pool, because other drivers may probe in the same directory for their pools. */
const memoryPrefixOf = ({ dev, ino }: { readonly dev: number; readonly ino: number }) => `${PROBE_PREFIX}${dev}-${ino}-`

/** Returns the directories outside the pool that a killed probe has left. */
export async function findProbeDirectories(poolDir: string): Promise<string[]> {
  const pool = await stat(poolDir).catch(() => undefined)
  if (!pool) return []
  const names = await readdir(MEMORY_DIR).catch(() => [])
  return names.filter((name) => name.startsWith(memoryPrefixOf(pool))).map((name) => join(MEMORY_DIR, name))
}

/**
 * Returns the pool, or MEMORY_DIR if the pool is too full and MEMORY_DIR is writable: the driver must start with a full pool, so
 * that volumes can be deleted.
 */
async function chooseLocation(poolDir: string): Promise<{ parent: string; prefix: string; isPool: boolean }> {
  const { bavail, bsize } = await statfs(poolDir)
  if (bavail * bsize >= POOL_FREE_BYTES_MIN) return { parent: poolDir, prefix: PROBE_PREFIX, isPool: true }
  const prefix = memoryPrefixOf(await stat(poolDir))
  const isAccessible = await access(MEMORY_DIR, constants.W_OK).then(
    () => true,
    () => false,
  )
  if (isAccessible) return { parent: MEMORY_DIR, prefix, isPool: false }
  return { parent: poolDir, prefix: PROBE_PREFIX, isPool: true }
}

interface ProbeTools {
  readonly files: Files
  readonly loops: Loops
  readonly mounts: Mounts
  readonly filesystems: Filesystems
}

const PROBE_LOOP_BYTES = 1024 * 1024

async function tryLoop(file: string, { files, loops }: ProbeTools): Promise<void> {
  await files.extend(file, PROBE_LOOP_BYTES)
  await loops.detach(await loops.attach(file), { file })
}

/** Replaces the message of a missing ability if the driver lacks CAP_SYS_ADMIN, which is then the probable cause. */
function explainMissingCapability(ability: Ability, { sysAdmin }: HostFacts['capabilities']): Ability {
  if (ability.available || sysAdmin) return ability
  return unavailable('the driver does not have CAP_SYS_ADMIN, which loop devices and mounts require; run it as root')
}

async function tryFilesystems(
  dir: string,
  canLoop: Ability,
  tools: ProbeTools,
): Promise<Record<FilesystemType, Ability>> {
  const abilities = {} as Record<FilesystemType, Ability>
  for (const type of FILESYSTEM_TYPES) {
    abilities[type] = canLoop.available
      ? await tryAbility(() => tryFilesystem(dir, type, tools))
      : unavailable(canLoop.message)
  }
  return abilities
}

/** Without enough space a probe is not conclusive, so a file system type counts as supported if its mkfs is installed. */
async function assumeSupportedByTools(abilities: Record<FilesystemType, Ability>): Promise<void> {
  for (const type of FILESYSTEM_TYPES)
    if (!abilities[type].available && (await isOnPath(`mkfs.${type}`))) abilities[type] = AVAILABLE
}

async function tryFilesystem(dir: string, type: FilesystemType, tools: ProbeTools): Promise<void> {
  const file = join(dir, type)
  const mountpoint = join(dir, `${type}-mounted`)
  await tools.files.extend(file, minimumBytes(type))
  const device = await tools.loops.attach(file)
  try {
    await tools.filesystems.format(device, type, { keepReservation: false })
    await mkdir(mountpoint)
    await tools.mounts.mount(device, mountpoint, type)
  } finally {
    await tools.mounts.unmount(mountpoint)
    await tools.loops.detach(device, { file })
  }
}

async function tryReflink(dir: string, poolDir: string): Promise<Ability> {
  const original = join(dir, 'original')
  await writeFile(original, 'shared')
  try {
    await copyFile(original, join(dir, 'copy'), constants.COPYFILE_FICLONE_FORCE)
    return AVAILABLE
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    return unavailable(`the file system of ${poolDir} cannot share blocks between files (${code}); xfs and btrfs can`)
  }
}

async function findTools(): Promise<Readonly<Record<Tool, Ability>>> {
  const abilities = {} as Record<Tool, Ability>
  for (const tool of TOOLS)
    abilities[tool] = (await isOnPath(tool)) ? AVAILABLE : unavailable(new MissingToolError(tool).message)
  return abilities
}

async function isOnPath(program: string): Promise<boolean> {
  for (const directory of searchPath().split(':')) {
    const isAccessible = await access(join(directory, program), constants.X_OK).then(
      () => true,
      () => false,
    )
    if (isAccessible) return true
  }
  return false
}

/** Removes mounts, devices and files of this probe and of killed ones. */
async function removeLeftovers(parent: string, prefix: string, { loops, mounts }: ProbeTools): Promise<void> {
  const leftovers = (await readdir(parent)).filter((name) => name.startsWith(prefix))
  if (leftovers.length === 0) return
  const isProbePath = (path: string) => leftovers.some((name) => path.includes(`/${name}/`))
  for (const { target } of await mounts.list()) if (isProbePath(target)) await mounts.unmount(target)
  for (const { device, file } of await loops.list().catch(() => [])) {
    if (isProbePath(file)) await loops.detach(device, { file })
  }
  for (const name of leftovers) await rm(join(parent, name), { recursive: true, force: true })
}

const CAP_SYS_ADMIN = 21n
const CAP_SYS_RESOURCE = 24n

export function parseCapabilities(status: string): HostFacts['capabilities'] {
  const effectiveMask = BigInt(`0x${/^CapEff:\s*([0-9a-f]+)/m.exec(status)?.[1] ?? '0'}`)
  const hasCapability = (bit: bigint) => (effectiveMask & (1n << bit)) !== 0n
  return { sysAdmin: hasCapability(CAP_SYS_ADMIN), sysResource: hasCapability(CAP_SYS_RESOURCE) }
}

const AVAILABLE: Ability = { available: true }
const unavailable = (message: string): Ability => ({ available: false, message })
const NO_SYS_RESOURCE =
  'the driver does not have CAP_SYS_RESOURCE, which the kernel requires for growing a mounted ext4'

const findFirstAvailable = (abilities: readonly Ability[]): Ability =>
  abilities.find((ability) => ability.available) ?? abilities[0]!

async function tryAbility(work: () => Promise<void>): Promise<Ability> {
  try {
    await work()
    return AVAILABLE
  } catch (error) {
    return unavailable((error as Error).message)
  }
}
