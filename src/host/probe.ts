// Detects the capabilities of this machine by trying them on small files in the pool, with a reason for everything that is
// not. The result selects the driver's backend and appears in its manifest, its metrics and the list of skipped tests.
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
export type Tool = (typeof TOOLS)[number]

export interface HostFacts {
  readonly isRoot: boolean
  /** Effective capabilities. Mounts and loop devices need CAP_SYS_ADMIN; growing a mounted ext4 also CAP_SYS_RESOURCE. */
  readonly capabilities: { readonly sysAdmin: boolean; readonly sysResource: boolean }
  /** A loop device can be attached and detached. */
  readonly canLoop: Ability
  /** At least one file system type can be formatted and mounted. */
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

/** Several times what mkfs writes for the smallest file system. */
const PROBE_SPACE_BYTES = 256 * 1024 * 1024

/** Used for loop devices and file systems if the pool is too full; these results do not depend on the pool. */
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
    const canLoop = explainRights(await attempt(() => tryLoop(join(dir, 'loop'), tools)), capabilities)
    const filesystems = await tryFilesystems(dir, canLoop, tools)
    if (!location.isPool && canLoop.yes) await assumeSupportedByTools(filesystems)
    return {
      isRoot: process.getuid?.() === 0,
      capabilities,
      canLoop,
      canMount: anyOf(Object.values(filesystems)),
      filesystems,
      tools: await findTools(),
      canReflink: location.isPool ? await tryReflink(dir, poolDir) : no(`${poolDir} was too full to try`),
      canGrowExt4Online: capabilities.sysResource ? YES : no(NO_SYS_RESOURCE),
      limits: await findLimits(),
    }
  } finally {
    await removeLeftovers(location.parent, location.prefix, tools)
  }
}

/** A full pool must not prevent the driver from starting, because only the driver can delete volumes. */
async function chooseLocation(poolDir: string): Promise<{ parent: string; prefix: string; isPool: boolean }> {
  const { bavail, bsize } = await statfs(poolDir)
  if (bavail * bsize >= PROBE_SPACE_BYTES) return { parent: poolDir, prefix: PROBE_PREFIX, isPool: true }
  const { dev, ino } = await stat(poolDir) // other drivers may probe here for their own pools
  const isThere = await access(MEMORY_DIR, constants.W_OK).then(
    () => true,
    () => false,
  )
  if (isThere) return { parent: MEMORY_DIR, prefix: `${PROBE_PREFIX}${dev}-${ino}-`, isPool: false }
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

/** Replaces the error of a program by the missing capability. */
function explainRights(ability: Ability, { sysAdmin }: HostFacts['capabilities']): Ability {
  if (ability.yes || sysAdmin) return ability
  return no('the driver does not have CAP_SYS_ADMIN, which loop devices and mounts require; run it as root')
}

async function tryFilesystems(
  dir: string,
  canLoop: Ability,
  tools: ProbeTools,
): Promise<Record<FilesystemType, Ability>> {
  const found = {} as Record<FilesystemType, Ability>
  for (const type of FILESYSTEM_TYPES) {
    found[type] = canLoop.yes ? await attempt(() => tryFilesystem(dir, type, tools)) : no(canLoop.because)
  }
  return found
}

/** A probe without enough space proves nothing; existing volumes show that it worked before, so rely on the tools. */
async function assumeSupportedByTools(found: Record<FilesystemType, Ability>): Promise<void> {
  for (const type of FILESYSTEM_TYPES) if (!found[type].yes && (await isOnPath(`mkfs.${type}`))) found[type] = YES
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

/** Removes mounts, devices and files, also those of a probe that was killed. */
async function removeLeftovers(parent: string, prefix: string, { loops, mounts }: ProbeTools): Promise<void> {
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
const NO_SYS_RESOURCE =
  'the driver does not have CAP_SYS_RESOURCE, which the kernel requires for growing a mounted ext4'

const anyOf = (abilities: readonly Ability[]): Ability => abilities.find((it) => it.yes) ?? abilities[0]!

async function attempt(work: () => Promise<void>): Promise<Ability> {
  try {
    await work()
    return YES
  } catch (error) {
    return no((error as Error).message)
  }
}
