// Judges growth, commit by commit and call by call, with arithmetic of its own: no size falls, nobody is told of a size
// that is not there, the driver is never asked for more than is charged nor for less than it has, and what a quota says
// is what the claims add up to. At rest every claim has what it asks for, or says why not.
import { persistentVolumeClaimKind } from '../src/api/kinds/claim/claim.ts'
import { resourceQuotaKind } from '../src/api/kinds/resource-quota/resource-quota.ts'
import { persistentVolumeKind } from '../src/api/kinds/volume/volume.ts'
import { collectionPrefix, decodeStored } from '../src/apiserver/index.ts'
import { callDriver } from '../src/csi/driver.ts'
import { type CsiDriver, createCsiDriver } from '../src/csi/index.ts'
import type { Cluster } from '../src/sim/world/cluster.ts'
import type { SimDriver } from '../src/sim/world/driver.ts'
import type { Store } from '../src/store/index.ts'

export interface ExpansionRules {
  readonly cluster: Cluster
  readonly driver: SimDriver
  /** Whether the mark may fall once a size is proven. */
  readonly followsRealSize: boolean
  /** The largest volume the driver makes. */
  readonly maximumBytes: number
  convict(crime: string): void
}

export interface ExpansionChecker {
  /** The driver as the expander reaches it. */
  witness(driver: CsiDriver): CsiDriver
  /** Whether the driver has what it was last asked for. */
  isGiven(volumeId: string): boolean
  /** What is wrong, now that it should be quiet. */
  problems(): string[]
  claim(name: string): any
  readonly claims: ReadonlyMap<string, any>
  readonly volumes: ReadonlyMap<string, any>
  readonly changedMs: number
  /** Counts what was seen: several changes may come in one moment. */
  readonly changes: number
  /** For the one who reads a failing run. */
  text(): string
}

const RESIZE_CONDITIONS = ['Resizing', 'FileSystemResizePending', 'ControllerResizeError', 'NodeResizeError']
const PRE_RESIZE = 'volume.alpha.kubernetes.io/pre-resize-capacity'

export function checkExpansion(rules: ExpansionRules): ExpansionChecker {
  const { cluster, driver, followsRealSize, maximumBytes, convict } = rules
  const claims = new Map<string, any>()
  const volumes = new Map<string, any>()
  const quotas = new Map<string, any>()
  const kept = [
    { prefix: collectionPrefix(persistentVolumeClaimKind), objects: claims, judge: judgeClaim },
    { prefix: collectionPrefix(persistentVolumeKind), objects: volumes, judge: judgeVolume },
    { prefix: collectionPrefix(resourceQuotaKind), objects: quotas, judge: judgeQuota },
  ]
  const askedBytes = new Map<string, number>()
  let changedMs = 0
  let changes = 0

  /** What comes in one call became visible at once. Every write of a claim is there, of a quota only the last. */
  function take(states: readonly { key: string; value: Uint8Array | undefined; revision: number }[]): void {
    const judgements: (() => void)[] = []
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
      judgements.push(() => of.judge(next, old))
    }
    if (!isNews) return
    for (const judge of judgements) judge()
    changedMs = cluster.world.nowMs
    changes++
    for (const quota of quotas.values()) judgeSum(quota)
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

  function judgeClaim(claim: any, old: any): void {
    const { name } = claim.metadata
    const real = realOf(claim)
    if (markOf(claim) < requestOf(claim)) convict(`${name} asks for more than its mark`)
    if (capacityOf(claim) > real.deviceBytes)
      convict(`${name} is said to have ${capacityOf(claim)}, the device has ${real.deviceBytes}`)
    if (capacityOf(claim) > real.fileSystemBytes)
      convict(`${name} is said to have ${capacityOf(claim)}, its file system has ${real.fileSystemBytes}`)
    if (real.deviceBytes > chargeOf(claim)) convict(`${name} has ${real.deviceBytes} and is charged ${chargeOf(claim)}`)
    if (!old) return
    if (capacityOf(claim) < capacityOf(old)) convict(`the capacity of ${name} fell`)
    if (markOf(claim) < markOf(old) && !(followsRealSize && isSettled(claim))) convict(`the mark of ${name} fell`)
  }

  function judgeVolume(volume: any, old: any): void {
    const { name } = volume.metadata
    const said = bytesOf(volume.spec.capacity.storage)
    if (old && said < bytesOf(old.spec.capacity.storage)) convict(`the capacity of volume ${name} fell`)
    const device = driver.state().volumes[volume.spec.csi.volumeHandle]?.capacityBytes ?? 0
    if (said > device) convict(`volume ${name} is said to have ${said}, the device has ${device}`)
  }

  function judgeQuota(quota: any, old: any): void {
    const [used, hard] = [usedOf(quota), hardOf(quota)]
    if (used === undefined || !old) return
    const was = usedOf(old) ?? 0
    if (used > was && used > Math.max(hard, hardOf(old)))
      convict(`quota ${quota.metadata.name} was exceeded: ${used} of ${hard}`)
  }

  function judgeSum(quota: any): void {
    const used = usedOf(quota)
    const sum = [...claims.values()].reduce((total, claim) => total + chargeOf(claim), 0)
    if (used !== undefined && used !== sum) convict(`the quota says ${used}, the claims add up to ${sum}`)
  }

  /** Its device, and how far the file system on it reaches where that is the node's to grow. */
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
    const told = conditions.filter(({ type }) => RESIZE_CONDITIONS.includes(type)).map(({ type }) => type)
    const [wanted, has] = [requestOf(claim), capacityOf(claim)]
    // The device has grown, the node would not follow, and the user asks for no more than there was: nothing is left to do.
    const isGivenUp = state === 'NodeResizeInfeasible' && wanted <= has && told.includes('NodeResizeError')
    if (isGivenUp) return []
    if (wanted > maximumBytes) {
      const why = conditions.find(({ type }) => type === 'ControllerResizeError')?.message
      return state === 'ControllerResizeInfeasible' && why
        ? []
        : [`${name} cannot grow to ${wanted}, and does not say so (${state})`]
    }
    const problems: string[] = []
    const volume = [...volumes.values()].find(({ metadata }) => metadata.name === claim.spec.volumeName)
    const { deviceBytes, fileSystemBytes } = realOf(claim)
    if (wanted > has) problems.push(`${name} asks for ${wanted}, and has ${has} (${state})`)
    if (state !== undefined) problems.push(`${name} is still ${state}`)
    if (told.length > 0) problems.push(`${name} still says ${told.join(', ')}`)
    if (has !== deviceBytes) problems.push(`${name} is said to have ${has}, its device has ${deviceBytes}`)
    if (has !== fileSystemBytes) problems.push(`${name} is said to have ${has}, its file system has ${fileSystemBytes}`)
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
    witness: (to) =>
      createCsiDriver((method, request, options) => {
        if (method.name === 'ControllerExpandVolume') judgeCall(request as never)
        return callDriver(to, method, request, options)
      }),
  }

  function judgeCall({
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
    if (asked > chargeOf(claim)) convict(`the driver is asked for ${asked} where ${chargeOf(claim)} is charged`)
    if (asked < deviceBytes) convict(`the driver is asked for ${asked} of ${volumeId}, which has ${deviceBytes}`)
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
