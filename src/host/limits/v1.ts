// Limits through the blkio controller of cgroup v1. It is flat: a line counts only for processes in that very cgroup,
// so every workload's cgroup gets one. The root gets one too: write-back of buffered data runs there, and lines are
// per device, so no one else is slowed down.
import { deviceNumberOf, noSuchDevice } from '../device-number.ts'
import type { Enforcement, IoLimit, IoLimits, LimitInForce } from '../host.ts'
import { allCgroups, cgroupPath, readCgroupFile, writeCgroupFile } from './hierarchy.ts'
import { isUnlimited, LIMIT_KEYS, type LimitKey, limitValue } from './limit-values.ts'
import { type Placed, placeLines } from './place-lines.ts'

export interface LimitsDeps {
  /** Where the hierarchy is mounted. */
  readonly root: string
  readonly deviceNumber?: (device: string) => Promise<string>
}

const FILE_OF: Readonly<Record<LimitKey, string>> = {
  readIops: 'blkio.throttle.read_iops_device',
  writeIops: 'blkio.throttle.write_iops_device',
  readBps: 'blkio.throttle.read_bps_device',
  writeBps: 'blkio.throttle.write_bps_device',
}

const REMOVES_THE_LINE = '0'

export function createV1Limits({ root, deviceNumber = deviceNumberOf }: LimitsDeps): IoLimits {
  const appliedTo = new Map<string, readonly string[]>() // for each device with lines, the cgroups that hold them

  /** True if the cgroup is there and now says exactly this about the device. */
  async function setLines(number: string, cgroup: string, limit: IoLimit): Promise<boolean> {
    for (const key of LIMIT_KEYS) {
      const line = `${number} ${limitValue(limit, key) ?? REMOVES_THE_LINE}`
      if (!(await writeCgroupFile(root, cgroup, FILE_OF[key], line))) return false
    }
    return true
  }

  async function readLines(number: string, cgroup: string): Promise<IoLimit> {
    const limit: Partial<Record<LimitKey, number>> = {}
    for (const key of LIMIT_KEYS) {
      const value = parseV1Lines(await readCgroupFile(root, cgroup, FILE_OF[key])).get(number)
      if (value !== undefined) limit[key] = value
    }
    return limit
  }

  async function inForce(device: string): Promise<LimitInForce[]> {
    const number = await deviceNumber(device).catch(noSuchDevice)
    if (number === undefined) return []
    const found: LimitInForce[] = []
    for (const cgroup of await allCgroups(root)) {
      const limit = await readLines(number, cgroup)
      if (!isUnlimited(limit)) found.push({ cgroup, limit })
    }
    return found
  }

  return {
    version: 'v1',

    async apply(device, wanted, cgroups): Promise<Enforcement> {
      const number = await deviceNumber(device)
      const limit = wanted === 'none' ? {} : wanted
      const workloads = [...new Set(cgroups.map(cgroupPath))]
      const before = appliedTo.get(device) ?? []
      const placed = await placeLines(new Set(['/', ...workloads]), (cgroup) => setLines(number, cgroup, limit))
      await placeLines(
        before.filter((cgroup) => !placed.holders.includes(cgroup)),
        (cgroup) => setLines(number, cgroup, {}),
      )
      if (isUnlimited(limit)) {
        appliedTo.delete(device)
        return { is: 'enforced', cgroups: [], escapes: [] }
      }
      appliedTo.set(device, placed.holders)
      return enforcementOf(placed, workloads)
    },

    async clear(device) {
      appliedTo.delete(device)
      for (const { cgroup } of await inForce(device)) await setLines(await deviceNumber(device), cgroup, {})
    },

    inForce,
  }
}

function enforcementOf({ holders, refusals }: Placed, workloads: readonly string[]): Enforcement {
  const limited = workloads.filter((cgroup) => holders.includes(cgroup))
  if (limited.length > 0) {
    const separate = limited.length === 1 ? [] : [`each of the ${limited.length} cgroups has the whole limit to itself`]
    return { is: 'enforced', cgroups: holders, escapes: [...separate, ...refusals] }
  }
  const missing = workloads.length === 0 ? 'no workload cgroup is known' : `there is no cgroup ${workloads.join(', ')}`
  const why = refusals.length > 0 ? refusals.join(', and ') : missing
  return { is: 'not enforced', because: `${why}; with cgroup v1 only write-back and the root cgroup are limited` }
}

/** `7:0 1048576` lines; a value of 0 is none. */
export function parseV1Lines(text: string): Map<string, number> {
  const values = new Map<string, number>()
  for (const line of text.split('\n')) {
    const [number, value] = line.trim().split(/\s+/)
    if (number && value && Number(value) > 0) values.set(number, Number(value))
  }
  return values
}
