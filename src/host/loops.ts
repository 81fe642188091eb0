// Loop devices over volume files. The kernel would attach one file twice and let both be written, which ruins it, so
// attaching looks for a device by inode first, under a lock for that file. Devices have no owner: they outlive us, and
// their numbers, with limits and read-only marks on them, go to the next file.
import { strict as assert } from 'node:assert'
import { readFile, stat } from 'node:fs/promises'
import { basename } from 'node:path'
import type { Clock } from '../base/clock.ts'
import { formatDeviceNumber } from './device-number.ts'
import { ProgramFailedError } from './errors.ts'
import type { Detachment, LoopDevice, Loops, Mounts } from './host.ts'
import { keyedLock } from './keyed-lock.ts'
import { formatFileId, LOOP_COLUMNS, parseLoopList } from './loop-list.ts'
import type { Run } from './run.ts'

export interface LoopsDeps {
  readonly run: Run
  readonly clock: Clock
  readonly mounts: Pick<Mounts, 'mountsOf'>
  /** Limits stay with the loop number: they go before the device does. */
  readonly clearLimits: (device: string) => Promise<void>
  readonly sysBlock?: string
}

/** Someone who only looks at the device (blkid, losetup --list) lets go of it within this time. */
const DETACH_WAIT_MS = 2_000
const DETACH_POLL_MS = 5

const SECTOR_BYTES = 512

export function createLoops({ run, clock, mounts, clearLimits, sysBlock = '/sys/block' }: LoopsDeps): Loops {
  const withLock = keyedLock()

  const sysFile = async (device: string, name: string): Promise<string | undefined> => {
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
    const id = await fileIdOf(file)
    return id === undefined ? [] : (await list()).filter((device) => device.fileId === id)
  }

  async function attach(file: string, { readOnly = false } = {}): Promise<string> {
    const id = await fileIdOf(file)
    if (id === undefined) throw new Error(`Cannot attach ${file}: there is no such file.`)
    return withLock(id, () => (readOnly ? attachReadOnly(file) : attachWritable(file)))
  }

  async function attachWritable(file: string): Promise<string> {
    const device = (await attachUnlessOverlapping(file)) ?? (await attachBesideOthers(file))
    // The mark of `blockdev --setro` survives a detach and would make this volume read-only.
    if ((await sysFile(device, 'ro')) === '1') await run('blockdev', ['--setrw', device])
    return device
  }

  /** One command for the usual cases: no device yet, or exactly one, which losetup finds by inode and reuses. */
  async function attachUnlessOverlapping(file: string): Promise<string | undefined> {
    try {
      return await losetup(file, ['--nooverlap'])
    } catch (error) {
      if (complains(error, /overlapping/)) return undefined
      throw error
    }
  }

  /** Read-only devices beside it are no harm; anything else over the file is not ours to share with. */
  async function attachBesideOthers(file: string): Promise<string> {
    const writable = (await findByFile(file)).filter((device) => !device.isReadOnly)
    const partial = writable.find((device) => device.offsetBytes !== 0 || device.sizeLimitBytes !== 0)
    if (partial || writable.length > 1) {
      const devices = writable.map((device) => device.device).join(', ')
      throw new Error(`Cannot attach ${file}: ${devices} is over it already and not by us. Detach it first.`)
    }
    return writable[0]?.device ?? losetup(file, [])
  }

  async function attachReadOnly(file: string): Promise<string> {
    const known = (await findByFile(file)).find((it) => it.isReadOnly && it.offsetBytes === 0 && !it.isAutoclear)
    return known?.device ?? losetup(file, ['--read-only'])
  }

  /** Direct IO where the file's file system has it: without it everything is cached twice. */
  async function losetup(file: string, options: readonly string[]): Promise<string> {
    const attachWith = async (more: readonly string[]) => {
      const { stdout } = await run('losetup', ['--find', '--show', ...options, ...more, file])
      const device = stdout.trim()
      assert(/^\/dev\/loop\d+$/.test(device), `losetup named no device: "${device}"`)
      return device
    }
    try {
      return await attachWith(['--direct-io=on'])
    } catch (error) {
      if (!complains(error, /direct io/i)) throw error
      // It is attached by now, only not with direct IO: take that one rather than a second.
      const [half] = (await findByFile(file)).filter((it) => it.isReadOnly === options.includes('--read-only'))
      return half?.device ?? attachWith([])
    }
  }

  async function detach(device: string, { file }: { readonly file?: string } = {}): Promise<Detachment> {
    const id = file === undefined ? undefined : await fileIdOf(file)
    return withLock(id ?? device, () => detachLocked(device, file))
  }

  async function detachLocked(device: string, file: string | undefined): Promise<Detachment> {
    const backing = await sysFile(device, 'loop/backing_file')
    if (backing === undefined) {
      await clearLimits(device) // a crash may have come between the two
      return gone
    }
    if (file !== undefined && !(await isOver(device, file, backing))) return gone // the number has gone to another file
    await clearLimits(device)
    try {
      await run('losetup', ['--detach', device])
    } catch (error) {
      if (complains(error, /no such device/i)) return gone
      throw error
    }
    for (const endMs = clock.monotonicMs() + DETACH_WAIT_MS; ; await clock.sleep(DETACH_POLL_MS)) {
      if ((await sysFile(device, 'loop/backing_file')) !== backing) return gone
      const mountedAt = (await mounts.mountsOf(device)).map((mount) => mount.target)
      if (mountedAt.length > 0) {
        return {
          is: 'going',
          because: `${device} is mounted at ${mountedAt.join(', ')} and goes when that is unmounted`,
        }
      }
      if (clock.monotonicMs() >= endMs) {
        return { is: 'going', because: `a process has ${device} open and it goes when that process closes it` }
      }
    }
  }

  async function isOverNow(device: string, file: string): Promise<boolean> {
    const backing = await sysFile(device, 'loop/backing_file')
    if (backing === undefined) return false
    if (backing === file) return true
    if (backing === `${file} (deleted)`) return (await fileIdOf(file)) === undefined
    return (await findByFile(file)).some((it) => it.device === device)
  }

  /** By name, which costs nothing; by inode when the names differ, as after a rename or through another path. */
  async function isOver(device: string, file: string, backing: string): Promise<boolean> {
    if (backing === file || backing === `${file} (deleted)`) return true
    return (await findByFile(file)).some((it) => it.device === device)
  }

  return {
    attach,
    list,
    findByFile,
    isOver: isOverNow,
    async refreshSize(device) {
      await run('losetup', ['--set-capacity', device])
    },
    async sizeBytes(device) {
      const sectors = await sysFile(device, 'size')
      if (sectors === undefined) throw new Error(`There is no device ${device}.`)
      return Number(sectors) * SECTOR_BYTES
    },
    detach,
  }
}

const gone: Detachment = { is: 'gone' }

const complains = (error: unknown, about: RegExp) => error instanceof ProgramFailedError && about.test(error.stderr)

async function fileIdOf(file: string): Promise<string | undefined> {
  try {
    const { dev, ino } = await stat(file, { bigint: true })
    return formatFileId(formatDeviceNumber(dev), ino)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined
    throw error
  }
}
