// IO limits with io.max of cgroup v2. A limit is shared by all cgroups below it, so it is written to the deepest cgroup
// that contains all workloads of the volume: a true limit per volume that includes write-back. The root has no io.max.
import { join } from 'node:path'
import { deviceNumberOf, noSuchDevice } from '../device-number.ts'
import type { AppliedLimit, Enforcement, IoLimit, IoLimits } from '../host.ts'
import { allCgroups, cgroupPath, readCgroupFile, writeCgroupFile } from './hierarchy.ts'
import { isUnlimited, LIMIT_KEYS, type LimitKey, limitValue } from './limit-values.ts'
import type { LimitsDeps } from './v1.ts'
import { type WrittenLines, writeLines } from './write-lines.ts'

const WORD_OF: Readonly<Record<LimitKey, string>> = {
  readIops: 'riops',
  writeIops: 'wiops',
  readBps: 'rbps',
  writeBps: 'wbps',
}

export function createV2Limits({ root, deviceNumber = deviceNumberOf }: LimitsDeps): IoLimits {
  const appliedTo = new Map<string, readonly string[]>() // device → cgroups that hold its limits

  const setLine = (number: string, cgroup: string, limit: IoLimit) =>
    writeCgroupFile(root, cgroup, 'io.max', formatV2Line(number, limit))

  const hasController = async (cgroup: string, controller: string) =>
    (await readCgroupFile(root, cgroup, 'cgroup.controllers')).split(/\s+/).includes(controller)

  /** A cgroup has io.max only if all its ancestors enable the controller in cgroup.subtree_control. */
  async function enableControllers(cgroup: string): Promise<void> {
    let parent = '/'
    for (const name of cgroup.split('/').filter(Boolean)) {
      const child = join(parent, name)
      if (!(await hasController(child, 'io'))) await writeCgroupFile(root, parent, 'cgroup.subtree_control', '+io')
      // With the memory controller, write-back is charged to the writing cgroup; without it only direct and synced IO is
      // limited, which is still better than no limit.
      if (!(await hasController(child, 'memory'))) {
        await writeCgroupFile(root, parent, 'cgroup.subtree_control', '+memory').catch(() => false)
      }
      parent = child
    }
  }

  async function existing(cgroups: readonly string[]): Promise<string[]> {
    const paths = [...new Set(cgroups.map(cgroupPath))]
    const isThere = await Promise.all(
      paths.map(async (it) => (await readCgroupFile(root, it, 'cgroup.controllers')) !== ''),
    )
    return paths.filter((_, index) => isThere[index])
  }

  async function appliedLimits(device: string): Promise<AppliedLimit[]> {
    const number = await deviceNumber(device).catch(noSuchDevice)
    if (number === undefined) return []
    const found: AppliedLimit[] = []
    for (const cgroup of await allCgroups(root)) {
      const limit = parseV2Lines(await readCgroupFile(root, cgroup, 'io.max')).get(number)
      if (limit) found.push({ cgroup, limit })
    }
    return found
  }

  const removeLines = (number: string, cgroups: readonly string[]) =>
    writeLines(cgroups, (cgroup) => setLine(number, cgroup, {}))

  return {
    version: 'v2',

    async apply(device, wanted, cgroups): Promise<Enforcement> {
      const number = await deviceNumber(device)
      const limit = wanted === 'none' ? {} : wanted
      const before = appliedTo.get(device) ?? []
      const workloads = await existing(cgroups)
      if (isUnlimited(limit)) {
        await removeLines(number, [...before, ...workloads])
        appliedTo.delete(device)
        return { is: 'enforced', cgroups: [], escapes: [] }
      }
      const placed = await writeLines(cgroupsFor(workloads), async (cgroup) => {
        await enableControllers(cgroup)
        return setLine(number, cgroup, limit)
      })
      await removeLines(
        number,
        before.filter((cgroup) => !placed.cgroups.includes(cgroup)),
      )
      appliedTo.set(device, placed.cgroups)
      return enforcementOf(placed, cgroups)
    },

    async clear(device) {
      appliedTo.delete(device)
      for (const { cgroup } of await appliedLimits(device)) await setLine(await deviceNumber(device), cgroup, {})
    },

    appliedLimits,
  }
}

function enforcementOf({ cgroups, errors }: WrittenLines, asked: readonly string[]): Enforcement {
  if (cgroups.length > 0) {
    const separate = cgroups.length === 1 ? [] : [`each of the ${cgroups.length} cgroups has the full limit`]
    return { is: 'enforced', cgroups: cgroups, escapes: [...separate, ...errors] }
  }
  const missing = asked.length === 0 ? 'no workload cgroup is known' : `cgroup ${asked.join(', ')} does not exist`
  const why = errors.length > 0 ? errors.join(', and ') : missing
  return { is: 'not enforced', because: `${why}; with cgroup v2 a limit needs a cgroup below the root` }
}

/** The deepest common ancestor; if that is the root, which has no io.max, each cgroup separately. */
function cgroupsFor(workloads: readonly string[]): readonly string[] {
  const shared = commonAncestor(workloads)
  return shared === undefined || shared === '/' ? workloads.filter((it) => it !== '/') : [shared]
}

/** The deepest cgroup that contains all of them. */
export function commonAncestor(cgroups: readonly string[]): string | undefined {
  const [first, ...others] = cgroups.map((cgroup) => cgroup.split('/').filter(Boolean))
  if (!first) return undefined
  const shared = first.findIndex((name, depth) => others.some((names) => names[depth] !== name))
  return join('/', ...(shared < 0 ? first : first.slice(0, shared)))
}

export const formatV2Line = (number: string, limit: IoLimit) =>
  [number, ...LIMIT_KEYS.map((key) => `${WORD_OF[key]}=${limitValue(limit, key) ?? 'max'}`)].join(' ')

/** Parses lines like `7:0 rbps=max wbps=1048576 riops=max wiops=100`; omits lines without a limit. */
export function parseV2Lines(text: string): Map<string, IoLimit> {
  const limits = new Map<string, IoLimit>()
  for (const line of text.split('\n')) {
    const [number, ...words] = line.trim().split(/\s+/)
    const values = new Map(words.map((word) => word.split('=') as [string, string]))
    const limit: Partial<Record<LimitKey, number>> = {}
    for (const key of LIMIT_KEYS) {
      const value = Number(values.get(WORD_OF[key]))
      if (value > 0) limit[key] = value // 'max' and a missing key are NaN: no limit
    }
    if (number && !isUnlimited(limit)) limits.set(number, limit)
  }
  return limits
}
