// Sets IO limits with io.max of cgroup v2. All cgroups below a cgroup share its limit, so the limit of a volume is written to the
// deepest cgroup that contains all its workloads. If that is the root, which has no io.max, the cgroup of each workload gets the
// full limit.
import { join } from 'node:path'
import { deviceNumberOf, undefinedIfMissing } from '../device-number.ts'
import type { AppliedLimit, Enforcement, IoLimit, IoLimits } from '../host.ts'
import { listCgroups, normalizeCgroupPath, readCgroupFile, writeCgroupFile } from './hierarchy.ts'
import { isUnlimited, LIMIT_KEYS, type LimitKey, limitValue } from './limit-values.ts'
import type { LimitsDeps } from './v1.ts'
import { type WriteResult, writeLines } from './write-lines.ts'

const IO_MAX_KEYS: Readonly<Record<LimitKey, string>> = {
  readIops: 'riops',
  writeIops: 'wiops',
  readBps: 'rbps',
  writeBps: 'wbps',
}

export function createV2Limits({ root, readDeviceNumber = deviceNumberOf }: LimitsDeps): IoLimits {
  const cgroupsByDevice = new Map<string, readonly string[]>() // the cgroups with limits of the device

  const setLine = (deviceNumber: string, cgroup: string, limit: IoLimit) =>
    writeCgroupFile(root, cgroup, 'io.max', formatV2Line(deviceNumber, limit))

  const hasController = async (cgroup: string, controller: string) =>
    (await readCgroupFile(root, cgroup, 'cgroup.controllers')).split(/\s+/).includes(controller)

  /** A cgroup has io.max only if all its ancestors enable the controller in cgroup.subtree_control. */
  async function enableControllers(cgroup: string): Promise<void> {
    let parent = '/'
    for (const name of cgroup.split('/').filter(Boolean)) {
      const child = join(parent, name)
      if (!(await hasController(child, 'io'))) await writeCgroupFile(root, parent, 'cgroup.subtree_control', '+io')
      // Without the memory controller, write-back is not charged to the cgroup that wrote the data.
      if (!(await hasController(child, 'memory'))) {
        await writeCgroupFile(root, parent, 'cgroup.subtree_control', '+memory').catch(() => false)
      }
      parent = child
    }
  }

  async function filterExistingCgroups(cgroups: readonly string[]): Promise<string[]> {
    const paths = [...new Set(cgroups.map(normalizeCgroupPath))]
    const results = await Promise.all(
      paths.map(async (path) => (await readCgroupFile(root, path, 'cgroup.controllers')) !== ''),
    )
    return paths.filter((_, index) => results[index])
  }

  async function appliedLimits(device: string): Promise<AppliedLimit[]> {
    const deviceNumber = await readDeviceNumber(device).catch(undefinedIfMissing)
    if (deviceNumber === undefined) return []
    const deviceLimits: AppliedLimit[] = []
    for (const cgroup of await listCgroups(root)) {
      const limit = parseV2Lines(await readCgroupFile(root, cgroup, 'io.max')).get(deviceNumber)
      if (limit) deviceLimits.push({ cgroup, limit })
    }
    return deviceLimits
  }

  const removeLines = (deviceNumber: string, cgroups: readonly string[]) =>
    writeLines(cgroups, (cgroup) => setLine(deviceNumber, cgroup, {}))

  return {
    version: 'v2',

    async apply(device, requestedLimit, cgroups): Promise<Enforcement> {
      const deviceNumber = await readDeviceNumber(device)
      const limit = requestedLimit === 'none' ? {} : requestedLimit
      const previousCgroups = cgroupsByDevice.get(device) ?? []
      const workloads = await filterExistingCgroups(cgroups)
      if (isUnlimited(limit)) {
        await removeLines(deviceNumber, [...previousCgroups, ...workloads])
        cgroupsByDevice.delete(device)
        return { is: 'enforced', cgroups: [], caveats: [] }
      }
      const result = await writeLines(chooseCgroups(workloads), async (cgroup) => {
        await enableControllers(cgroup)
        return setLine(deviceNumber, cgroup, limit)
      })
      await removeLines(
        deviceNumber,
        previousCgroups.filter((cgroup) => !result.cgroups.includes(cgroup)),
      )
      cgroupsByDevice.set(device, result.cgroups)
      return enforcementOf(result, cgroups)
    },

    async clear(device) {
      cgroupsByDevice.delete(device)
      for (const { cgroup } of await appliedLimits(device)) await setLine(await readDeviceNumber(device), cgroup, {})
    },

    appliedLimits,
  }
}

function enforcementOf({ cgroups, errors }: WriteResult, requestedCgroups: readonly string[]): Enforcement {
  if (cgroups.length > 0) {
    const separateLimits = cgroups.length === 1 ? [] : [`each of the ${cgroups.length} cgroups has the full limit`]
    return { is: 'enforced', cgroups, caveats: [...separateLimits, ...errors] }
  }
  const missingReason =
    requestedCgroups.length === 0
      ? 'no workload cgroup is known'
      : `no cgroup of the workload exists: ${requestedCgroups.join(', ')}`
  const reason = errors.length > 0 ? errors.join(', and ') : missingReason
  return { is: 'not enforced', message: `${reason}; with cgroup v2 a limit needs a cgroup below the root` }
}

/** Returns the deepest common ancestor, or all workload cgroups if the ancestor is the root, which has no io.max. */
function chooseCgroups(workloads: readonly string[]): readonly string[] {
  const ancestor = commonAncestor(workloads)
  return ancestor === undefined || ancestor === '/' ? workloads.filter((cgroup) => cgroup !== '/') : [ancestor]
}

/** Returns the deepest cgroup that contains all of the cgroups. */
export function commonAncestor(cgroups: readonly string[]): string | undefined {
  const [firstPath, ...otherPaths] = cgroups.map((cgroup) => cgroup.split('/').filter(Boolean))
  if (!firstPath) return undefined
  const divergingDepth = firstPath.findIndex((name, depth) => otherPaths.some((names) => names[depth] !== name))
  return join('/', ...(divergingDepth < 0 ? firstPath : firstPath.slice(0, divergingDepth)))
}

export const formatV2Line = (deviceNumber: string, limit: IoLimit) =>
  [deviceNumber, ...LIMIT_KEYS.map((key) => `${IO_MAX_KEYS[key]}=${limitValue(limit, key) ?? 'max'}`)].join(' ')

/** Parses lines like `7:0 rbps=max wbps=1048576 riops=max wiops=100`. Lines without a limit are omitted. */
export function parseV2Lines(text: string): Map<string, IoLimit> {
  const limits = new Map<string, IoLimit>()
  for (const line of text.split('\n')) {
    const [deviceNumber, ...fields] = line.trim().split(/\s+/)
    const values = new Map(fields.map((field) => field.split('=') as [string, string]))
    const limit: Partial<Record<LimitKey, number>> = {}
    for (const key of LIMIT_KEYS) {
      const value = Number(values.get(IO_MAX_KEYS[key]))
      if (value > 0) limit[key] = value // 'max' and missing keys are NaN, which means no limit
    }
    if (deviceNumber && !isUnlimited(limit)) limits.set(deviceNumber, limit)
  }
  return limits
}
