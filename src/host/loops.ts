// Attaches and detaches the loop devices of image files. The kernel allows two writable devices for one file, which would
// corrupt it, so attach() first looks for a device by inode, with a lock per file. Devices outlive the process that created
// them. Their numbers are reused, together with cgroup limits and the read-only flag.
import { strict as assert } from 'node:assert'
import { readFile, stat } from 'node:fs/promises'
import { basename } from 'node:path'
import type { Clock } from '../base/clock.ts'
import { keyedLock } from '../base/keyed-lock.ts'
import { formatDeviceNumber } from './device-number.ts'
import { stderrMatches } from './errors.ts'
import type { Detachment, LoopDevice, Loops, Mounts } from './host.ts'
import { formatFileId, LOOP_COLUMNS, parseLoopList } from './loop-list.ts'
import type { Run } from './run.ts'

export interface LoopsDeps {
  readonly run: Run
  readonly clock: Clock
  readonly mounts: Pick<Mounts, 'mountsOf'>
  /** Called before a detach, because limits stay with the loop number. */
  readonly clearLimits: (device: string) => Promise<void>
  readonly sysBlock?: string
}

/** The time to wait for programs that have the device open. */
const DETACH_WAIT_MS = 2_000
const DETACH_POLL_MS = 5

const SECTOR_BYTES = 512

export function createLoops({ run, clock, mounts, clearLimits, sysBlock = '/sys/block' }: LoopsDeps): Loops {
  const withLock = keyedLock()

  const readSysFile = async (device: string, name: string): Promise<string | undefined> => {
    try {
      return (await readFile(`${sysBlock}/${basename(device)}/${name}`, 'utf8')).trimEnd()
    } catch (error) {
      if (['ENOENT', 'ENXIO', 'ENODEV'].includes((error as NodeJS.ErrnoException).code ?? '')) return undefined
      throw error
    }
  }

  async function list(): Promise<LoopDevice[]> {
    const { stdout } = await run('losetup', ['--list', '--json', '--output', LOOP_COLUMNS])
    return parseLoopList(stdout)
  }

  async function findByFile(file: string): Promise<LoopDevice[]> {
    const id = await readFileId(file)
    return id === undefined ? [] : (await list()).filter((device) => device.fileId === id)
  }

  async function attach(file: string, { readOnly = false } = {}): Promise<string> {
    const id = await readFileId(file)
    if (id === undefined) throw new Error(`Cannot attach ${file}: the file does not exist.`)
    return withLock(id, () => (readOnly ? attachReadOnly(file) : attachWritable(file)))
  }

  async function attachWritable(file: string): Promise<string> {
    const device = (await attachUnlessOverlapping(file)) ?? (await attachWithOtherDevices(file))
    // The flag of `blockdev --setro` persists after a detach and would make this volume read-only.
    if ((await readSysFile(device, 'ro')) === '1') await run('blockdev', ['--setrw', device])
    return device
  }

  /** Handles the common cases with one command: no device yet, or exactly one, which losetup finds by inode and reuses. */
  async function attachUnlessOverlapping(file: string): Promise<string | undefined> {
    try {
      return await losetup(file, ['--nooverlap'])
    } catch (error) {
      if (stderrMatches(error, /overlapping/)) return undefined
      throw error
    }
  }

  /** Returns the writable device, or attaches one. Throws if there are several, or one for a part of the file. */
  async function attachWithOtherDevices(file: string): Promise<string> {
    const writableLoops = (await findByFile(file)).filter((device) => !device.isReadOnly)
    const partialDevice = writableLoops.find((device) => device.offsetBytes !== 0 || device.sizeLimitBytes !== 0)
    if (partialDevice || writableLoops.length > 1) {
      const devices = writableLoops.map((device) => device.device).join(', ')
      throw new Error(`Cannot attach ${file}: another program has attached it as ${devices}. Detach it first.`)
    }
    return writableLoops[0]?.device ?? losetup(file, [])
  }

  async function attachReadOnly(file: string): Promise<string> {
    const readOnlyLoop = (await findByFile(file)).find(
      (loop) => loop.isReadOnly && loop.offsetBytes === 0 && loop.sizeLimitBytes === 0 && !loop.isAutoclear,
    )
    return readOnlyLoop?.device ?? losetup(file, ['--read-only'])
  }

  /** Uses direct IO if the file system supports it. Without direct IO, data is cached twice. */
  async function losetup(file: string, options: readonly string[]): Promise<string> {
    const attachWith = async (extraOptions: readonly string[]) => {
      const { stdout } = await run('losetup', ['--find', '--show', ...options, ...extraOptions, file])
      const device = stdout.trim()
      assert(/^\/dev\/loop\d+$/.test(device), `losetup printed no device: "${device}"`)
      return device
    }
    try {
      return await attachWith(['--direct-io=on'])
    } catch (error) {
      if (!stderrMatches(error, /direct io/i)) throw error
      // losetup has attached the device but could not enable direct IO. Use it instead of attaching a second one.
      const [attachedLoop] = (await findByFile(file)).filter(
        (loop) => loop.isReadOnly === options.includes('--read-only'),
      )
      return attachedLoop?.device ?? attachWith([])
    }
  }

  async function detach(device: string, { file }: { readonly file?: string } = {}): Promise<Detachment> {
    const id = file === undefined ? undefined : await readFileId(file)
    return withLock(id ?? device, () => detachLocked(device, file))
  }

  async function detachLocked(device: string, file: string | undefined): Promise<Detachment> {
    const backingFile = await readSysFile(device, 'loop/backing_file')
    if (backingFile === undefined) {
      await clearLimits(device) // the process may have crashed after an earlier detach
      return DETACHED
    }
    // The loop number may now belong to another file.
    if (file !== undefined && !(await isBackedByFile(device, file, backingFile))) return DETACHED
    await clearLimits(device)
    try {
      await run('losetup', ['--detach', device])
    } catch (error) {
      if (stderrMatches(error, /no such device/i)) return DETACHED
      throw error
    }
    for (const endMs = clock.monotonicMs() + DETACH_WAIT_MS; ; await clock.sleep(DETACH_POLL_MS)) {
      if ((await readSysFile(device, 'loop/backing_file')) !== backingFile) return DETACHED
      const mountPaths = (await mounts.mountsOf(device)).map((mount) => mount.target)
      if (mountPaths.length > 0) {
        return {
          is: 'pending',
          message: `${device} is mounted at ${mountPaths.join(', ')} and is detached when that is unmounted`,
        }
      }
      if (clock.monotonicMs() >= endMs) {
        return {
          is: 'pending',
          message: `a process has ${device} open, and it is detached when that process closes it`,
        }
      }
    }
  }

  async function isBackedBy(device: string, file: string): Promise<boolean> {
    const backingFile = await readSysFile(device, 'loop/backing_file')
    if (backingFile === undefined) return false
    if (backingFile === file) return true
    if (backingFile === `${file} (deleted)`) return (await readFileId(file)) === undefined
    return (await findByFile(file)).some((loop) => loop.device === device)
  }

  /** Compares names first, which is cheap, and then inodes, which still match after a rename. */
  async function isBackedByFile(device: string, file: string, backingFile: string): Promise<boolean> {
    if (backingFile === file || backingFile === `${file} (deleted)`) return true
    return (await findByFile(file)).some((loop) => loop.device === device)
  }

  return {
    attach,
    list,
    findByFile,
    isBackedBy,
    async refreshSize(device) {
      await run('losetup', ['--set-capacity', device])
    },
    async sizeBytes(device) {
      const sectors = await readSysFile(device, 'size')
      if (sectors === undefined) throw new Error(`Device ${device} does not exist.`)
      return Number(sectors) * SECTOR_BYTES
    },
    detach,
  }
}

const DETACHED: Detachment = { is: 'detached' }

async function readFileId(file: string): Promise<string | undefined> {
  try {
    const { dev, ino } = await stat(file, { bigint: true })
    return formatFileId(formatDeviceNumber(dev), ino)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined
    throw error
  }
}
