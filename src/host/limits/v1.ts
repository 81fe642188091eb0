// Sets IO limits with the blkio controller of cgroup v1. The controller is not hierarchical: a limit applies only to processes
// directly in the cgroup, so the limit is written to the cgroup of every workload, and to the root cgroup, where write-back of
// buffered data runs. Limits are per device, so workloads on other devices are not affected.
import { deviceNumberOf, undefinedIfMissing } from '../device-number.ts'
import type { AppliedLimit, Enforcement, IoLimit, IoLimits } from '../host.ts'
import { listCgroups, normalizeCgroupPath, readCgroupFile, writeCgroupFile } from './hierarchy.ts'
import { isUnlimited, LIMIT_KEYS, type LimitKey, limitValue } from './limit-values.ts'
import { type WriteResult, writeLines } from './write-lines.ts'

export interface LimitsDeps {
  /** The mount point of the hierarchy. */
  readonly root: string
  readonly readDeviceNumber?: (device: string) => Promise<string>
}

const LIMIT_FILES: Readonly<Record<LimitKey, string>> = {
  readIops: 'blkio.throttle.read_iops_device',
  writeIops: 'blkio.throttle.write_iops_device',
  readBps: 'blkio.throttle.read_bps_device',
  writeBps: 'blkio.throttle.write_bps_device',
}

const UNLIMITED = '0'

export function createV1Limits({ root, readDeviceNumber = deviceNumberOf }: LimitsDeps): IoLimits {
  const cgroupsByDevice = new Map<string, readonly string[]>() // the cgroups with limits of the device

  /** Sets exactly these limits of the device. Returns false if the cgroup does not exist. */
  async function setLines(deviceNumber: string, cgroup: string, limit: IoLimit): Promise<boolean> {
    for (const key of LIMIT_KEYS) {
      const line = `${deviceNumber} ${limitValue(limit, key) ?? UNLIMITED}`
      if (!(await writeCgroupFile(root, cgroup, LIMIT_FILES[key], line))) return false
    }
    return true
  }

  async function readLines(deviceNumber: string, cgroup: string): Promise<IoLimit> {
    const limit: Partial<Record<LimitKey, number>> = {}
    for (const key of LIMIT_KEYS) {
      const value = parseV1Lines(await readCgroupFile(root, cgroup, LIMIT_FILES[key])).get(deviceNumber)
      if (value !== undefined) limit[key] = value
    }
    return limit
  }

  async function appliedLimits(device: string): Promise<AppliedLimit[]> {
    const deviceNumber = await readDeviceNumber(device).catch(undefinedIfMissing)
    if (deviceNumber === undefined) return []
    const deviceLimits: AppliedLimit[] = []
    for (const cgroup of await listCgroups(root)) {
      const limit = await readLines(deviceNumber, cgroup)
      if (!isUnlimited(limit)) deviceLimits.push({ cgroup, limit })
    }
    return deviceLimits
  }

  return {
    version: 'v1',

    async apply(device, requestedLimit, cgroups): Promise<Enforcement> {
      const deviceNumber = await readDeviceNumber(device)
      const limit = requestedLimit === 'none' ? {} : requestedLimit
      const workloads = [...new Set(cgroups.map(normalizeCgroupPath))]
      const previousCgroups = cgroupsByDevice.get(device) ?? []
      const result = await writeLines(new Set(['/', ...workloads]), (cgroup) => setLines(deviceNumber, cgroup, limit))
      await writeLines(
        previousCgroups.filter((cgroup) => !result.cgroups.includes(cgroup)),
        (cgroup) => setLines(deviceNumber, cgroup, {}),
      )
      if (isUnlimited(limit)) {
        cgroupsByDevice.delete(device)
        return { is: 'enforced', cgroups: [], caveats: [] }
      }
      cgroupsByDevice.set(device, result.cgroups)
      return enforcementOf(result, workloads)
    },

    async clear(device) {
      cgroupsByDevice.delete(device)
      for (const { cgroup } of await appliedLimits(device)) await setLines(await readDeviceNumber(device), cgroup, {})
    },

    appliedLimits,
  }
}

function enforcementOf({ cgroups, errors }: WriteResult, workloads: readonly string[]): Enforcement {
  const limitedWorkloads = workloads.filter((cgroup) => cgroups.includes(cgroup))
  if (limitedWorkloads.length > 0) {
    const separateLimits =
      limitedWorkloads.length === 1 ? [] : [`each of the ${limitedWorkloads.length} cgroups has the full limit`]
    return { is: 'enforced', cgroups, caveats: [...separateLimits, ...errors] }
  }
  const missingReason =
    workloads.length === 0 ? 'no workload cgroup is known' : `no cgroup of the workload exists: ${workloads.join(', ')}`
  const reason = errors.length > 0 ? errors.join(', and ') : missingReason
  return { is: 'not enforced', message: `${reason}; with cgroup v1 only write-back and the root cgroup are limited` }
}

/** Parses lines like `7:0 1048576`. A value of 0 means no limit. */
export function parseV1Lines(text: string): Map<string, number> {
  const values = new Map<string, number>()
  for (const line of text.split('\n')) {
    const [deviceNumber, value] = line.trim().split(/\s+/)
    if (deviceNumber && value && Number(value) > 0) values.set(deviceNumber, Number(value))
  }
  return values
}
