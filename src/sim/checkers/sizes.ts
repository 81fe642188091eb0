// Checks sizes. Rule `shrunk`: the size that a driver holds, a volume states or a claim reports never falls, and no call requests
// less than the claim reports. A call may request less than the driver holds: if a user lowers a request before the driver has
// responded, the lower size is requested immediately, and the driver returns the actual one. Rule `wrong status`: no volume or
// claim reports more than the driver has, and after an expansion no claim reports more than its file system has. Rule `charge`:
// spec.allocatedResources, the size a quota charges, holds storage only, covers the request and falls only to a proven size.
// Rule `no intent`: controllers request at most the charged size.
import { quantityToBytes } from '../../api/quantity.ts'
import type { ControllerExpandVolumeRequest } from '../../csi/gen/csi_pb.js'
import type { DriverCall } from '../engine/system.ts'
import { assetName, assetOf, type ObjectOf } from '../engine/view.ts'
import { type CheckContext, findDriverVolume, isBound, parseAsset } from './context.ts'

const EXPAND = 'ControllerExpandVolume'

export function checkSizes({ system, view, exemptions, report }: CheckContext): void {
  /** The largest size of each driver volume so far. */
  const largestBytes = new Map<string, number>()

  view.onCommit((changes) => {
    for (const change of changes) {
      if (change.of === 'claim' && change.next) {
        checkCharge(change.next, change.old)
        checkClaim(change.next, change.old)
      }
      if (change.of === 'volume' && change.next) checkVolume(change.next, change.old)
    }
  })
  system.onCall((call, phase) => {
    if (phase === 'begins' && call.method === EXPAND) checkCall(call)
    if (phase === 'ends' && call.volume) checkDriverVolume(assetName(call.driver, call.volume))
  })

  function checkCharge(claim: ObjectOf<'claim'>, old: ObjectOf<'claim'> | undefined): void {
    const key = keyOf(claim)
    const otherNames = Object.keys(claim.spec?.allocatedResources ?? {}).filter((name) => name !== 'storage')
    if (otherNames.length > 0)
      report('charge', `spec.allocatedResources of claim ${key} holds ${otherNames.join(', ')}`)
    const chargedBytes = recordedCharge(claim)
    if (chargedBytes === undefined || exemptions.hadGatesOff) return
    if (chargedBytes < requestOf(claim))
      report('charge', `claim ${key} requests ${requestOf(claim)}, but only ${chargedBytes} is charged`)
    const previousBytes = old && recordedCharge(old)
    if (previousBytes === undefined || chargedBytes >= previousBytes) return
    const mayFall = system.setup.expansionQuota === 'actual' && isSettled(claim)
    if (!mayFall) report('charge', `the charge of claim ${key} fell from ${previousBytes} to ${chargedBytes}`)
  }

  function checkClaim(claim: ObjectOf<'claim'>, old: ObjectOf<'claim'> | undefined): void {
    if (!isBound(claim)) return
    const isSame = old !== undefined && isBound(old) && old.spec?.volumeName === claim.spec?.volumeName
    const [reportedBytes, previousBytes] = [capacityOf(claim), isSame ? capacityOf(old) : 0n]
    const key = keyOf(claim)
    if (reportedBytes < previousBytes)
      report('shrunk', `the capacity of claim ${key} fell from ${previousBytes} to ${reportedBytes}`)
    if (reportedBytes <= previousBytes) return
    const asset = assetOf(view.volumes.get(claim.spec?.volumeName ?? ''))
    const driverVolume = asset && findDriverVolume(system, asset)
    if (!driverVolume || exemptions.isLost(asset)) return
    if (reportedBytes > driverVolume.capacityBytes) {
      report('wrong status', `claim ${key} reports ${reportedBytes}, but ${asset} has ${driverVolume.capacityBytes}`)
    }
    // Only after an expansion, because the node decides the size of the file system of a volume that was just bound.
    const fileSystemBytes = isSame && claim.spec?.volumeMode !== 'Block' ? fileSystemBytesOf(asset) : undefined
    if (fileSystemBytes !== undefined && reportedBytes > fileSystemBytes) {
      report(
        'wrong status',
        `claim ${key} reports ${reportedBytes}, but the file system of ${asset} has ${fileSystemBytes}`,
      )
    }
  }

  /** Returns the largest size of the file system on any node, or undefined if the volume is mounted on none. */
  function fileSystemBytesOf(asset: string): number | undefined {
    if (!system.drivers.get(parseAsset(asset).driver)?.settings.expandsOnNode) return undefined
    const sizes = Object.values(findDriverVolume(system, asset)?.onNodes ?? {}).map(
      ({ fileSystemBytes }) => fileSystemBytes,
    )
    return sizes.length > 0 ? Math.max(...sizes) : undefined
  }

  function checkVolume(volume: ObjectOf<'volume'>, old: ObjectOf<'volume'> | undefined): void {
    const [statedBytes, previousBytes] = [sizeOf(volume), old ? sizeOf(old) : 0n]
    const { name } = volume.metadata
    if (statedBytes < previousBytes)
      report('shrunk', `the capacity of volume ${name} fell from ${previousBytes} to ${statedBytes}`)
    const asset = assetOf(volume)
    const driverVolume = asset && findDriverVolume(system, asset)
    if (statedBytes <= previousBytes || !driverVolume || exemptions.isLost(asset)) return
    if (statedBytes > driverVolume.capacityBytes) {
      report('wrong status', `volume ${name} records ${statedBytes}, but ${asset} has ${driverVolume.capacityBytes}`)
    }
  }

  function checkDriverVolume(asset: string): void {
    const driverVolume = findDriverVolume(system, asset)
    if (!driverVolume) {
      largestBytes.delete(asset)
      return
    }
    const previousBytes = largestBytes.get(asset) ?? 0
    // After the driver lost its state, another volume may get the same id.
    if (driverVolume.capacityBytes < previousBytes && !exemptions.isLost(asset)) {
      report('shrunk', `${asset} had ${previousBytes} bytes and has ${driverVolume.capacityBytes}`)
    }
    largestBytes.set(asset, driverVolume.capacityBytes)
  }

  function checkCall({ driver, volume: handle, request, process }: DriverCall): void {
    const asset = assetName(driver, handle)
    const requiredBytes = requiredBytesOf(request)
    const volume = view.volumesOf(driver, handle)[0]
    const claim = view.claimOfUid(volume?.spec?.claimRef?.uid ?? '')
    if (claim && requiredBytes < capacityOf(claim)) {
      report(
        'shrunk',
        `${process} requests ${requiredBytes} bytes of ${asset}, whose claim reports ${capacityOf(claim)}`,
      )
    }
    // With the gate off no charge was recorded; a deleted claim has none.
    if (!claim || exemptions.hadGatesOff) return
    const chargedBytes = chargeOf(claim)
    if (requiredBytes > chargedBytes) {
      report(
        'no intent',
        `${process} requests ${requiredBytes} bytes of ${asset}, but claim ${keyOf(claim)} is charged ${chargedBytes}`,
      )
    }
  }
}

const requiredBytesOf = (request: DriverCall['request']): bigint =>
  (request as ControllerExpandVolumeRequest).capacityRange?.requiredBytes ?? 0n

const toBytes = (text: string | undefined): bigint => (text === undefined ? 0n : quantityToBytes(text))
const capacityOf = ({ status }: ObjectOf<'claim'>): bigint => toBytes(status?.capacity?.storage)
const requestOf = ({ spec }: ObjectOf<'claim'>): bigint => toBytes(spec?.resources?.requests?.storage)
const sizeOf = ({ spec }: ObjectOf<'volume'>): bigint => toBytes(spec?.capacity?.storage)

const recordedCharge = ({ spec }: ObjectOf<'claim'>): bigint | undefined =>
  spec?.allocatedResources?.storage === undefined ? undefined : toBytes(spec.allocatedResources.storage)

/** Whether no expansion is in progress or due. */
const isSettled = (claim: ObjectOf<'claim'>): boolean =>
  claim.status?.allocatedResourceStatuses?.storage === undefined &&
  requestOf(claim) <= capacityOf(claim) &&
  toBytes(claim.status?.allocatedResources?.storage) <= capacityOf(claim)

/** Returns the size that a quota charges for a claim. */
export function chargeOf({ spec, status }: ObjectOf<'claim'>): bigint {
  const lists = [spec?.resources?.requests, spec?.allocatedResources, status?.allocatedResources]
  let largestSize = 0n
  for (const list of lists) if (toBytes(list?.storage) > largestSize) largestSize = toBytes(list?.storage)
  return largestSize
}

const keyOf = ({ metadata }: ObjectOf<'claim'>): string => `${metadata.namespace}/${metadata.name}`
