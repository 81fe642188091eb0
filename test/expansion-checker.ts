// Checks the sizes and charges of claims, volumes and quotas after each commit, and those of a claim before each expansion call
// reaches the driver. It shares no arithmetic with the code under test.
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
  /** Whether the high-water mark may decrease while no expansion is in progress. */
  readonly followsRealSize: boolean
  /** The largest volume that the driver supports. */
  readonly maximumBytes: number
  reportViolation(violation: string): void
}

export interface ExpansionChecker {
  /** Wraps the driver to check calls of ControllerExpandVolume. */
  wrapDriver(driver: CsiDriver): CsiDriver
  /** Whether the volume has at least the size that the last call requested. */
  hasRequestedSize(volumeId: string): boolean
  /** Returns the violations at rest. */
  problems(): string[]
  claim(name: string): any
  readonly claims: ReadonlyMap<string, any>
  readonly volumes: ReadonlyMap<string, any>
  readonly changedMs: number
  /** Number of commits that changed an object. Several may have the same time. */
  readonly changeCount: number
  /** Returns the objects as text, for a failed test's message. */
  text(): string
}

const RESIZE_CONDITIONS = ['Resizing', 'FileSystemResizePending', 'ControllerResizeError', 'NodeResizeError']
const PRE_RESIZE = 'volume.alpha.kubernetes.io/pre-resize-capacity'

export function checkExpansion(rules: ExpansionRules): ExpansionChecker {
  const { cluster, driver, followsRealSize, maximumBytes, reportViolation } = rules
  const claims = new Map<string, any>()
  const volumes = new Map<string, any>()
  const quotas = new Map<string, any>()
  const collections = [
    { prefix: collectionPrefix(persistentVolumeClaimKind), objects: claims, check: checkClaim },
    { prefix: collectionPrefix(persistentVolumeKind), objects: volumes, check: checkVolume },
    { prefix: collectionPrefix(resourceQuotaKind), objects: quotas, check: checkQuota },
  ]
  const requestedBytes = new Map<string, number>()
  let changedMs = 0
  let changeCount = 0

  /** Applies states that became visible together, and compares quotas with their claims after the last one. */
  function applyStates(states: readonly { key: string; value: Uint8Array | undefined; revision: number }[]): void {
    const checks: (() => void)[] = []
    let hasChanges = false
    for (const { key, value, revision } of states) {
      const collection = collections.find(({ prefix }) => key.startsWith(prefix))
      const oldObject = collection?.objects.get(key)
      if (!collection || oldObject?.metadata.resourceVersion === String(revision)) continue
      hasChanges = true
      if (value === undefined) {
        collection.objects.delete(key)
        continue
      }
      const newObject = decodeStored({ value, modRevision: revision })
      collection.objects.set(key, newObject)
      checks.push(() => collection.check(newObject, oldObject))
    }
    if (!hasChanges) return
    for (const check of checks) check()
    changedMs = cluster.simulation.nowMs
    changeCount++
    for (const quota of quotas.values()) checkUsage(quota)
  }

  async function attach(store: Store): Promise<void> {
    const { entries, revision } = await store.list({ prefix: 'core/' })
    applyStates(entries.map(({ key, value, modRevision }) => ({ key, value, revision: modRevision })))
    store.watch({
      prefix: 'core/',
      afterRevision: revision,
      onEvents: (events) =>
        applyStates(events.map((event) => ({ key: event.key, value: event.entry?.value, revision: event.revision }))),
      onEnd: () => {},
    })
  }
  cluster.follow((store) => void attach(store))

  function checkClaim(claim: any, oldClaim: any): void {
    const { name } = claim.metadata
    const actualSize = actualSizes(claim)
    if (markOf(claim) < requestOf(claim)) reportViolation(`${name} requests more than its mark`)
    if (capacityOf(claim) > actualSize.deviceBytes)
      reportViolation(`${name} reports ${capacityOf(claim)}, but the device has ${actualSize.deviceBytes}`)
    if (capacityOf(claim) > actualSize.fileSystemBytes)
      reportViolation(`${name} reports ${capacityOf(claim)}, but its file system has ${actualSize.fileSystemBytes}`)
    if (actualSize.deviceBytes > chargeOf(claim))
      reportViolation(`${name} has ${actualSize.deviceBytes} and is charged ${chargeOf(claim)}`)
    if (!oldClaim) return
    if (capacityOf(claim) < capacityOf(oldClaim)) reportViolation(`the capacity of ${name} decreased`)
    if (markOf(claim) < markOf(oldClaim) && !(followsRealSize && isSettled(claim)))
      reportViolation(`the mark of ${name} decreased`)
  }

  function checkVolume(volume: any, oldVolume: any): void {
    const { name } = volume.metadata
    const volumeBytes = bytesOf(volume.spec.capacity.storage)
    if (oldVolume && volumeBytes < bytesOf(oldVolume.spec.capacity.storage))
      reportViolation(`the capacity of volume ${name} decreased`)
    const device = driver.state().volumes[volume.spec.csi.volumeHandle]?.capacityBytes ?? 0
    if (volumeBytes > device) reportViolation(`volume ${name} reports ${volumeBytes}, but the device has ${device}`)
  }

  function checkQuota(quota: any, oldQuota: any): void {
    const [used, hard] = [usedOf(quota), hardOf(quota)]
    if (used === undefined || !oldQuota) return
    const previousBytes = usedOf(oldQuota) ?? 0
    if (used > previousBytes && used > Math.max(hard, hardOf(oldQuota)))
      reportViolation(`quota ${quota.metadata.name} was exceeded: ${used} of ${hard}`)
  }

  function checkUsage(quota: any): void {
    const used = usedOf(quota)
    const sum = [...claims.values()].reduce((total, claim) => total + chargeOf(claim), 0)
    if (used !== undefined && used !== sum)
      reportViolation(`the quota reports ${used}, but the claims add up to ${sum}`)
  }

  /** Returns the size of the device, and of the file system if the node expands it. */
  function actualSizes(claim: any): { deviceBytes: number; fileSystemBytes: number } {
    const volume = [...volumes.values()].find(({ metadata }) => metadata.name === claim.spec.volumeName)
    const driverVolume = driver.state().volumes[volume?.spec.csi.volumeHandle]
    const deviceBytes = driverVolume?.capacityBytes ?? 0
    const [nodeVolume] = Object.values(driverVolume?.onNodes ?? {})
    return {
      deviceBytes,
      fileSystemBytes: driver.settings.expandsOnNode && nodeVolume ? nodeVolume.fileSystemBytes : deviceBytes,
    }
  }

  function findProblems(claim: any): string[] {
    const { name } = claim.metadata
    const state = claim.status.allocatedResourceStatuses?.storage
    const conditions: any[] = claim.status.conditions ?? []
    const resizeConditions = conditions.filter(({ type }) => RESIZE_CONDITIONS.includes(type)).map(({ type }) => type)
    const [requested, reported] = [requestOf(claim), capacityOf(claim)]
    // The device was expanded, node expansion is infeasible, and the claim requests no more than it has: nothing is left to do.
    const isAbandoned =
      state === 'NodeResizeInfeasible' && requested <= reported && resizeConditions.includes('NodeResizeError')
    if (isAbandoned) return []
    if (requested > maximumBytes) {
      const reason = conditions.find(({ type }) => type === 'ControllerResizeError')?.message
      return state === 'ControllerResizeInfeasible' && reason
        ? []
        : [`${name} cannot grow to ${requested}, but does not report it (${state})`]
    }
    const problems: string[] = []
    const volume = [...volumes.values()].find(({ metadata }) => metadata.name === claim.spec.volumeName)
    const { deviceBytes, fileSystemBytes } = actualSizes(claim)
    if (requested > reported) problems.push(`${name} requests ${requested}, but has ${reported} (${state})`)
    if (state !== undefined) problems.push(`${name} is still ${state}`)
    if (resizeConditions.length > 0) problems.push(`${name} still reports ${resizeConditions.join(', ')}`)
    if (reported !== deviceBytes) problems.push(`${name} reports ${reported}, but its device has ${deviceBytes}`)
    if (reported !== fileSystemBytes)
      problems.push(`${name} reports ${reported}, but its file system has ${fileSystemBytes}`)
    if (bytesOf(volume?.spec.capacity.storage) !== reported)
      problems.push(`${name} and its volume do not agree on a size`)
    if (volume?.metadata.annotations?.[PRE_RESIZE]) problems.push(`the volume of ${name} is still marked as growing`)
    if (followsRealSize && chargeOf(claim) !== Math.max(reported, requested))
      problems.push(`${name} is charged ${chargeOf(claim)} for ${reported}`)
    return problems
  }

  return {
    claims,
    volumes,
    claim: (name) => claims.get(`${collections[0]!.prefix}default/${name}`),
    text: () =>
      [...claims.values(), ...volumes.values()]
        .map(({ metadata: { name, annotations }, spec, status }) => JSON.stringify({ name, annotations, spec, status }))
        .join('\n'),
    problems: () => [...claims.values()].flatMap(findProblems),
    hasRequestedSize: (volumeId) =>
      (driver.state().volumes[volumeId]?.capacityBytes ?? 0) >= (requestedBytes.get(volumeId) ?? 0),
    get changedMs() {
      return changedMs
    },
    get changeCount() {
      return changeCount
    },
    wrapDriver: (target) =>
      createCsiDriver((method, request, options) => {
        if (method.name === 'ControllerExpandVolume') checkCall(request as never)
        return callDriver(target, method, request, options)
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
    const requiredBytes = Number(capacityRange?.requiredBytes ?? 0n)
    requestedBytes.set(volumeId, requiredBytes)
    const { deviceBytes } = actualSizes(claim)
    if (requiredBytes > chargeOf(claim))
      reportViolation(`the driver is called with ${requiredBytes}, but ${chargeOf(claim)} is charged`)
    if (requiredBytes < deviceBytes)
      reportViolation(`the driver is called with ${requiredBytes} for ${volumeId}, which has ${deviceBytes}`)
  }
}

const UNITS: Readonly<Record<string, number>> = { '': 1, Ki: 1024, Mi: 1024 ** 2, Gi: 1024 ** 3, Ti: 1024 ** 4 }

function bytesOf(size: string | undefined): number {
  if (size === undefined) return 0
  const [, number, unit = ''] = /^(\d+)([KMGT]i)?$/.exec(size) ?? []
  return Number(number) * UNITS[unit]!
}

const requestOf = (claim: any): number => bytesOf(claim.spec.resources.requests.storage)
const markOf = (claim: any): number => bytesOf(claim.spec.allocatedResources?.storage)
const allocatedOf = (claim: any): number => bytesOf(claim.status?.allocatedResources?.storage)
const capacityOf = (claim: any): number => bytesOf(claim.status?.capacity?.storage)
const chargeOf = (claim: any): number => Math.max(requestOf(claim), markOf(claim), allocatedOf(claim))
const isSettled = (claim: any): boolean =>
  claim.status.allocatedResourceStatuses?.storage === undefined &&
  requestOf(claim) <= capacityOf(claim) &&
  allocatedOf(claim) <= capacityOf(claim)

const usedOf = ({ status }: any): number | undefined =>
  status?.used?.['requests.storage'] === undefined ? undefined : bytesOf(status.used['requests.storage'])
const hardOf = ({ spec }: any): number => bytesOf(spec.hard['requests.storage'])
