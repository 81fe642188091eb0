// Checks expansion, commit by commit and call by call, with independent arithmetic: no size decreases, no reported size
// exceeds the real one, the driver is never called with more than is charged or less than it has, and the usage of a
// quota equals the sum over its claims. At rest every claim has what it requests, or reports why not.
import { persistentVolumeClaimKind } from '../src/api/kinds/claim/claim.ts'
import { resourceQuotaKind } from '../src/api/kinds/resource-quota/resource-quota.ts'
import { persistentVolumeKind } from '../src/api/kinds/volume/volume.ts'
import { collectionPrefix, decodeStored } from '../src/apiserver/index.ts'
import { callDriver } from '../src/csi/driver.ts'
import { type CsiDriver, createCsiDriver } from '../src/csi/index.ts'
import type { Cluster } from '../src/sim/environment/cluster.ts'
import type { SimDriver } from '../src/sim/environment/driver.ts'
import type { Store } from '../src/store/index.ts'

export interface ExpansionRules {
  readonly cluster: Cluster
  readonly driver: SimDriver
  /** Whether the high-water mark may fall once a size is proven. */
  readonly followsRealSize: boolean
  /** The largest volume that the driver supports. */
  readonly maximumBytes: number
  reportViolation(violation: string): void
}

export interface ExpansionChecker {
  /** Wraps the driver of the controller, to check its calls. */
  wrapDriver(driver: CsiDriver): CsiDriver
  /** Whether the volume has the size of the last call. */
  isGiven(volumeId: string): boolean
  /** The violations at rest. */
  problems(): string[]
  claim(name: string): any
  readonly claims: ReadonlyMap<string, any>
  readonly volumes: ReadonlyMap<string, any>
  readonly changedMs: number
  /** Number of commits seen: several may happen at one moment. */
  readonly changes: number
  /** The objects, for the message of a failing run. */
  text(): string
}

const RESIZE_CONDITIONS = ['Resizing', 'FileSystemResizePending', 'ControllerResizeError', 'NodeResizeError']
const PRE_RESIZE = 'volume.alpha.kubernetes.io/pre-resize-capacity'

export function checkExpansion(rules: ExpansionRules): ExpansionChecker {
  const { cluster, driver, followsRealSize, maximumBytes, reportViolation } = rules
  const claims = new Map<string, any>()
  const volumes = new Map<string, any>()
  const quotas = new Map<string, any>()
  const kept = [
    { prefix: collectionPrefix(persistentVolumeClaimKind), objects: claims, check: checkClaim },
    { prefix: collectionPrefix(persistentVolumeKind), objects: volumes, check: checkVolume },
    { prefix: collectionPrefix(resourceQuotaKind), objects: quotas, check: checkQuota },
  ]
  const askedBytes = new Map<string, number>()
  let changedMs = 0
  let changes = 0

  /** The states of one call became visible together. Every write of a claim is included, of a quota only the last. */
  function take(states: readonly { key: string; value: Uint8Array | undefined; revision: number }[]): void {
    const checks: (() => void)[] = []
    let isNews = false
    for (const { key, value, revision } of states) {
      const of = kept.find(({ prefix }) => key.startsWith(prefix))
      const old = of?.objects.get(key)
      if (!of || old?.metadata.resourceVersion === String(revision)) continue
      isNews = true
      if (value === undefined) {
        of.objects.delete(key)
        continue
      }
      const next = decodeStored({ value, modRevision: revision })
      of.objects.set(key, next)
      checks.push(() => of.check(next, old))
    }
    if (!isNews) return
    for (const check of checks) check()
    changedMs = cluster.simulation.nowMs
    changes++
    for (const quota of quotas.values()) checkSum(quota)
  }

  async function attach(store: Store): Promise<void> {
    const { entries, revision } = await store.list({ prefix: 'core/' })
    take(entries.map(({ key, value, modRevision }) => ({ key, value, revision: modRevision })))
    store.watch({
      prefix: 'core/',
      afterRevision: revision,
      onEvents: (events) =>
        take(events.map(({ key, revision: at, entry }) => ({ key, value: entry?.value, revision: at }))),
      onEnd: () => {},
    })
  }
  cluster.follow((store) => void attach(store))

  function checkClaim(claim: any, old: any): void {
    const { name } = claim.metadata
    const real = realOf(claim)
    if (markOf(claim) < requestOf(claim)) reportViolation(`${name} requests more than its mark`)
    if (capacityOf(claim) > real.deviceBytes)
      reportViolation(`${name} reports ${capacityOf(claim)}, the device has ${real.deviceBytes}`)
    if (capacityOf(claim) > real.fileSystemBytes)
      reportViolation(`${name} reports ${capacityOf(claim)}, its file system has ${real.fileSystemBytes}`)
    if (real.deviceBytes > chargeOf(claim))
      reportViolation(`${name} has ${real.deviceBytes} and is charged ${chargeOf(claim)}`)
    if (!old) return
    if (capacityOf(claim) < capacityOf(old)) reportViolation(`the capacity of ${name} fell`)
    if (markOf(claim) < markOf(old) && !(followsRealSize && isSettled(claim)))
      reportViolation(`the mark of ${name} fell`)
  }

  function checkVolume(volume: any, old: any): void {
    const { name } = volume.metadata
    const said = bytesOf(volume.spec.capacity.storage)
    if (old && said < bytesOf(old.spec.capacity.storage)) reportViolation(`the capacity of volume ${name} fell`)
    const device = driver.state().volumes[volume.spec.csi.volumeHandle]?.capacityBytes ?? 0
    if (said > device) reportViolation(`volume ${name} reports ${said}, the device has ${device}`)
  }

  function checkQuota(quota: any, old: any): void {
    const [used, hard] = [usedOf(quota), hardOf(quota)]
    if (used === undefined || !old) return
    const was = usedOf(old) ?? 0
    if (used > was && used > Math.max(hard, hardOf(old)))
      reportViolation(`quota ${quota.metadata.name} was exceeded: ${used} of ${hard}`)
  }

  function checkSum(quota: any): void {
    const used = usedOf(quota)
    const sum = [...claims.values()].reduce((total, claim) => total + chargeOf(claim), 0)
    if (used !== undefined && used !== sum) reportViolation(`the quota says ${used}, the claims add up to ${sum}`)
  }

  /** The size of its device, and of its file system if the node expands it. */
  function realOf(claim: any): { deviceBytes: number; fileSystemBytes: number } {
    const volume = [...volumes.values()].find(({ metadata }) => metadata.name === claim.spec.volumeName)
    const held = driver.state().volumes[volume?.spec.csi.volumeHandle]
    const deviceBytes = held?.capacityBytes ?? 0
    const [presence] = Object.values(held?.onNodes ?? {})
    return {
      deviceBytes,
      fileSystemBytes: driver.settings.expandsOnNode && presence ? presence.fileSystemBytes : deviceBytes,
    }
  }

  function problemsOf(claim: any): string[] {
    const { name } = claim.metadata
    const state = claim.status.allocatedResourceStatuses?.storage
    const conditions: any[] = claim.status.conditions ?? []
    const reported = conditions.filter(({ type }) => RESIZE_CONDITIONS.includes(type)).map(({ type }) => type)
    const [wanted, has] = [requestOf(claim), capacityOf(claim)]
    // The device has grown, the node refused, and the claim requests no more than before: nothing is left to do.
    const isGivenUp = state === 'NodeResizeInfeasible' && wanted <= has && reported.includes('NodeResizeError')
    if (isGivenUp) return []
    if (wanted > maximumBytes) {
      const why = conditions.find(({ type }) => type === 'ControllerResizeError')?.message
      return state === 'ControllerResizeInfeasible' && why
        ? []
        : [`${name} cannot grow to ${wanted}, and does not report it (${state})`]
    }
    const problems: string[] = []
    const volume = [...volumes.values()].find(({ metadata }) => metadata.name === claim.spec.volumeName)
    const { deviceBytes, fileSystemBytes } = realOf(claim)
    if (wanted > has) problems.push(`${name} requests ${wanted}, and has ${has} (${state})`)
    if (state !== undefined) problems.push(`${name} is still ${state}`)
    if (reported.length > 0) problems.push(`${name} still reports ${reported.join(', ')}`)
    if (has !== deviceBytes) problems.push(`${name} reports ${has}, its device has ${deviceBytes}`)
    if (has !== fileSystemBytes) problems.push(`${name} reports ${has}, its file system has ${fileSystemBytes}`)
    if (bytesOf(volume?.spec.capacity.storage) !== has) problems.push(`${name} and its volume do not agree on a size`)
    if (volume?.metadata.annotations?.[PRE_RESIZE]) problems.push(`the volume of ${name} is still marked as growing`)
    if (followsRealSize && chargeOf(claim) !== Math.max(has, wanted))
      problems.push(`${name} is charged ${chargeOf(claim)} for ${has}`)
    return problems
  }

  return {
    claims,
    volumes,
    claim: (name) => claims.get(`${kept[0]!.prefix}default/${name}`),
    text: () =>
      [...claims.values(), ...volumes.values()]
        .map(({ metadata: { name, annotations }, spec, status }) => JSON.stringify({ name, annotations, spec, status }))
        .join('\n'),
    problems: () => [...claims.values()].flatMap(problemsOf),
    isGiven: (volumeId) => (driver.state().volumes[volumeId]?.capacityBytes ?? 0) >= (askedBytes.get(volumeId) ?? 0),
    get changedMs() {
      return changedMs
    },
    get changes() {
      return changes
    },
    wrapDriver: (to) =>
      createCsiDriver((method, request, options) => {
        if (method.name === 'ControllerExpandVolume') checkCall(request as never)
        return callDriver(to, method, request, options)
      }),
  }

  function checkCall({
    volumeId,
    capacityRange,
  }: {
    volumeId: string
    capacityRange?: { requiredBytes: bigint }
  }): void {
    const volume = [...volumes.values()].find(({ spec }) => spec.csi.volumeHandle === volumeId)
    const claim = [...claims.values()].find(({ metadata }) => metadata.uid === volume?.spec.claimRef?.uid)
    const asked = Number(capacityRange?.requiredBytes ?? 0n)
    askedBytes.set(volumeId, asked)
    const { deviceBytes } = realOf(claim)
    if (asked > chargeOf(claim))
      reportViolation(`the driver is called with ${asked}, but ${chargeOf(claim)} is charged`)
    if (asked < deviceBytes)
      reportViolation(`the driver is called with ${asked} for ${volumeId}, which has ${deviceBytes}`)
  }
}

const UNITS: Readonly<Record<string, number>> = { '': 1, Ki: 1024, Mi: 1024 ** 2, Gi: 1024 ** 3, Ti: 1024 ** 4 }

export function bytesOf(size: string | undefined): number {
  if (size === undefined) return 0
  const [, number, unit = ''] = /^(\d+)([KMGT]i)?$/.exec(size) ?? []
  return Number(number) * UNITS[unit]!
}

const requestOf = (claim: any): number => bytesOf(claim.spec.resources.requests.storage)
const markOf = (claim: any): number => bytesOf(claim.spec.allocatedResources?.storage)
const triedOf = (claim: any): number => bytesOf(claim.status?.allocatedResources?.storage)
const capacityOf = (claim: any): number => bytesOf(claim.status?.capacity?.storage)
const chargeOf = (claim: any): number => Math.max(requestOf(claim), markOf(claim), triedOf(claim))
const isSettled = (claim: any): boolean =>
  claim.status.allocatedResourceStatuses?.storage === undefined &&
  requestOf(claim) <= capacityOf(claim) &&
  triedOf(claim) <= capacityOf(claim)

const usedOf = ({ status }: any): number | undefined =>
  status?.used?.['requests.storage'] === undefined ? undefined : bytesOf(status.used['requests.storage'])
const hardOf = ({ spec }: any): number => bytesOf(spec.hard['requests.storage'])
