// Limits through io.max of cgroup v2. A line in a cgroup is one bucket for all below it, so the nearest cgroup that
// holds all of a volume's workloads gets it: a true limit per volume, write-back included. The root cannot have one.
import { join } from 'node:path'
import { deviceNumberOf, noSuchDevice } from '../device-number.ts'
import type { Enforcement, IoLimit, IoLimits, LimitInForce } from '../host.ts'
import { allCgroups, cgroupPath, readCgroupFile, writeCgroupFile } from './hierarchy.ts'
import { isUnlimited, LIMIT_KEYS, type LimitKey, limitValue } from './limit-values.ts'
import { type Placed, placeLines } from './place-lines.ts'
import type { LimitsDeps } from './v1.ts'

const WORD_OF: Readonly<Record<LimitKey, string>> = {
  readIops: 'riops',
  writeIops: 'wiops',
  readBps: 'rbps',
  writeBps: 'wbps',
}

export function createV2Limits({ root, deviceNumber = deviceNumberOf }: LimitsDeps): IoLimits {
  const appliedTo = new Map<string, readonly string[]>() // for each device with lines, the cgroups that hold them

  const setLine = (number: string, cgroup: string, limit: IoLimit) =>
    writeCgroupFile(root, cgroup, 'io.max', formatV2Line(number, limit))

  const hasController = async (cgroup: string, controller: string) =>
    (await readCgroupFile(root, cgroup, 'cgroup.controllers')).split(/\s+/).includes(controller)

  /** A cgroup has io.max only if every cgroup above it hands the controller down. */
  async function handDown(cgroup: string): Promise<void> {
    let parent = '/'
    for (const name of cgroup.split('/').filter(Boolean)) {
      const child = join(parent, name)
      if (!(await hasController(child, 'io'))) await writeCgroupFile(root, parent, 'cgroup.subtree_control', '+io')
      // With memory beside it write-back is charged to whoever wrote; without it only direct and synced IO is limited,
      // which is no reason to have no limit at all.
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

  async function inForce(device: string): Promise<LimitInForce[]> {
    const number = await deviceNumber(device).catch(noSuchDevice)
    if (number === undefined) return []
    const found: LimitInForce[] = []
    for (const cgroup of await allCgroups(root)) {
      const limit = parseV2Lines(await readCgroupFile(root, cgroup, 'io.max')).get(number)
      if (limit) found.push({ cgroup, limit })
    }
    return found
  }

  const setFree = (number: string, cgroups: readonly string[]) =>
    placeLines(cgroups, (cgroup) => setLine(number, cgroup, {}))

  return {
    version: 'v2',

    async apply(device, wanted, cgroups): Promise<Enforcement> {
      const number = await deviceNumber(device)
      const limit = wanted === 'none' ? {} : wanted
      const before = appliedTo.get(device) ?? []
      const workloads = await existing(cgroups)
      if (isUnlimited(limit)) {
        await setFree(number, [...before, ...workloads])
        appliedTo.delete(device)
        return { is: 'enforced', cgroups: [], escapes: [] }
      }
      const placed = await placeLines(placesFor(workloads), async (cgroup) => {
        await handDown(cgroup)
        return setLine(number, cgroup, limit)
      })
      await setFree(
        number,
        before.filter((cgroup) => !placed.holders.includes(cgroup)),
      )
      appliedTo.set(device, placed.holders)
      return enforcementOf(placed, cgroups)
    },

    async clear(device) {
      appliedTo.delete(device)
      for (const { cgroup } of await inForce(device)) await setLine(await deviceNumber(device), cgroup, {})
    },

    inForce,
  }
}

function enforcementOf({ holders, refusals }: Placed, asked: readonly string[]): Enforcement {
  if (holders.length > 0) {
    const separate = holders.length === 1 ? [] : [`each of the ${holders.length} cgroups has the whole limit to itself`]
    return { is: 'enforced', cgroups: holders, escapes: [...separate, ...refusals] }
  }
  const missing = asked.length === 0 ? 'no workload cgroup is known' : `there is no cgroup ${asked.join(', ')}`
  const why = refusals.length > 0 ? refusals.join(', and ') : missing
  return { is: 'not enforced', because: `${why}; with cgroup v2 a limit needs a cgroup below the root` }
}

/** One line where they meet; where that is only at the root, which has no io.max, one for each. */
function placesFor(workloads: readonly string[]): readonly string[] {
  const shared = commonAncestor(workloads)
  return shared === undefined || shared === '/' ? workloads.filter((it) => it !== '/') : [shared]
}

/** The deepest cgroup that holds all of them: a single one is its own. */
export function commonAncestor(cgroups: readonly string[]): string | undefined {
  const [first, ...others] = cgroups.map((cgroup) => cgroup.split('/').filter(Boolean))
  if (!first) return undefined
  const shared = first.findIndex((name, depth) => others.some((names) => names[depth] !== name))
  return join('/', ...(shared < 0 ? first : first.slice(0, shared)))
}

export const formatV2Line = (number: string, limit: IoLimit) =>
  [number, ...LIMIT_KEYS.map((key) => `${WORD_OF[key]}=${limitValue(limit, key) ?? 'max'}`)].join(' ')

/** `7:0 rbps=max wbps=1048576 riops=max wiops=100` lines; one that limits nothing is left out. */
export function parseV2Lines(text: string): Map<string, IoLimit> {
  const limits = new Map<string, IoLimit>()
  for (const line of text.split('\n')) {
    const [number, ...words] = line.trim().split(/\s+/)
    const values = new Map(words.map((word) => word.split('=') as [string, string]))
    const limit: Partial<Record<LimitKey, number>> = {}
    for (const key of LIMIT_KEYS) {
      const value = Number(values.get(WORD_OF[key]))
      if (value > 0) limit[key] = value // 'max' and a missing word are not numbers, and so no limit
    }
    if (number && !isUnlimited(limit)) limits.set(number, limit)
  }
  return limits
}
