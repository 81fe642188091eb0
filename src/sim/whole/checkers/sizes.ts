// Sizes only rise: what a driver has, what its volume object says, what a claim is told. Nobody is told of a size that is
// not there, and the driver is asked only for what the claim says it may be asked for.
import { quantityToBytes } from '../../../api/quantity.ts'
import type { ControllerExpandVolumeRequest } from '../../../csi/gen/csi_pb.js'
import { type CsiCode, isUncertainCode } from '../../../csi/index.ts'
import type { StageCall } from '../stage.ts'
import { assetName, assetOf, type Of } from '../view.ts'
import { type Court, heldAt, isBound, partsOf } from './court.ts'

const EXPAND = 'ControllerExpandVolume'

export function judgeSizes({ stage, view, past, convict }: Court): void {
  /** The most that each thing in a driver has had. */
  const largest = new Map<string, number>()

  view.onCommit((changes) => {
    for (const change of changes) {
      if (change.of === 'claim' && change.next) judgeClaim(change.next, change.old)
      if (change.of === 'volume' && change.next) judgeVolume(change.next, change.old)
    }
  })
  stage.onCall((call, phase) => {
    if (phase === 'begins' && call.method === EXPAND) judgeCall(call)
    if (phase === 'ends' && call.volume) judgeHeld(assetName(call.driver, call.volume))
  })

  function judgeClaim(claim: Of<'claim'>, old: Of<'claim'> | undefined): void {
    if (!isBound(claim)) return
    const isSame = old !== undefined && isBound(old) && old.spec?.volumeName === claim.spec?.volumeName
    const [said, before] = [toldOf(claim), isSame ? toldOf(old) : 0n]
    const key = `${claim.metadata.namespace}/${claim.metadata.name}`
    if (said < before) convict('shrunk', `the capacity of claim ${key} fell from ${before} to ${said}`)
    if (said <= before) return
    const asset = assetOf(view.volumes.get(claim.spec?.volumeName ?? ''))
    const held = asset && heldAt(stage, asset)
    if (!held || past.isLost(asset)) return
    if (said > held.capacityBytes) {
      convict('told wrongly', `claim ${key} is said to have ${said}, ${asset} has ${held.capacityBytes}`)
    }
    // Of a volume that grew; what was on it before is as large as the node has made it.
    const fileSystem = isSame && claim.spec?.volumeMode !== 'Block' ? fileSystemOf(asset) : undefined
    if (fileSystem !== undefined && said > fileSystem) {
      convict('told wrongly', `claim ${key} is said to have ${said}, the file system of ${asset} has ${fileSystem}`)
    }
  }

  /** As far as the largest reaches: each node keeps its own books of a shared one. Undefined: it is mounted nowhere. */
  function fileSystemOf(asset: string): number | undefined {
    if (!stage.drivers.get(partsOf(asset).driver)?.settings.expandsOnNode) return undefined
    const sizes = Object.values(heldAt(stage, asset)?.onNodes ?? {}).map(({ fileSystemBytes }) => fileSystemBytes)
    return sizes.length > 0 ? Math.max(...sizes) : undefined
  }

  function judgeVolume(volume: Of<'volume'>, old: Of<'volume'> | undefined): void {
    const [said, before] = [capacityOf(volume), old ? capacityOf(old) : 0n]
    const { name } = volume.metadata
    if (said < before) convict('shrunk', `the capacity of volume ${name} fell from ${before} to ${said}`)
    const asset = assetOf(volume)
    const held = asset && heldAt(stage, asset)
    if (said <= before || !held || past.isLost(asset)) return
    if (said > held.capacityBytes) {
      convict('told wrongly', `volume ${name} is said to have ${said}, ${asset} has ${held.capacityBytes}`)
    }
  }

  function judgeHeld(asset: string): void {
    const held = heldAt(stage, asset)
    if (!held) {
      largest.delete(asset)
      return
    }
    const before = largest.get(asset) ?? 0
    // Another may have its id once the storage has forgotten it.
    if (held.capacityBytes < before && !past.isLost(asset)) {
      convict('shrunk', `${asset} had ${before} bytes and has ${held.capacityBytes}`)
    }
    largest.set(asset, held.capacityBytes)
  }

  /** Whoever grew a volume unheard, and was then told for good that it cannot be so large, must believe it. */
  const isDenied = (driver: string, handle: string, size: number): boolean =>
    stage.calls.some(
      (call) =>
        call.driver === driver &&
        call.volume === handle &&
        call.method === EXPAND &&
        call.endedMs !== undefined &&
        call.outcome !== 'OK' &&
        !isUncertainCode(call.outcome as CsiCode) &&
        askedFor(call.request) >= size,
    )

  function judgeCall({ driver, volume: handle, request, process }: StageCall): void {
    const asset = assetName(driver, handle)
    const asked = askedFor(request)
    const held = heldAt(stage, asset)
    if (held && asked < held.capacityBytes && !past.isLost(asset) && !isDenied(driver, handle, held.capacityBytes)) {
      convict('shrunk', `${process} asks for ${asked} bytes of ${asset}, which has ${held.capacityBytes}`)
    }
    const volume = view.volumesOf(driver, handle)[0]
    const claim = view.claimOfUid(volume?.spec?.claimRef?.uid ?? '')
    // While the feature was off nothing was written down; a claim that is gone cannot say anything any more.
    if (!claim || past.hadGatesOff) return
    const charged = chargeOf(claim)
    if (asked > charged) {
      const key = `${claim.metadata.namespace}/${claim.metadata.name}`
      convict(
        'asked without intent',
        `${process} asks for ${asked} bytes of ${asset}, and claim ${key} says ${charged}`,
      )
    }
  }
}

const askedFor = (request: StageCall['request']): bigint =>
  (request as ControllerExpandVolumeRequest).capacityRange?.requiredBytes ?? 0n

const bytes = (text: string | undefined): bigint => (text === undefined ? 0n : quantityToBytes(text))
const toldOf = ({ status }: Of<'claim'>): bigint => bytes(status?.capacity?.storage)
const capacityOf = ({ spec }: Of<'volume'>): bigint => bytes(spec?.capacity?.storage)
/** The most that a claim has on record. */
const chargeOf = ({ spec, status }: Of<'claim'>): bigint => {
  const lists = [spec?.resources?.requests, spec?.allocatedResources, status?.allocatedResources]
  let most = 0n
  for (const list of lists) if (bytes(list?.storage) > most) most = bytes(list?.storage)
  return most
}
