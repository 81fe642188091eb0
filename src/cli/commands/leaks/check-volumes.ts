// Checks with the driver whether the volumes of PVs that it did not list exist: with ControllerGetVolume, or without that
// capability with ValidateVolumeCapabilities if the driver cannot list volumes. Otherwise the list decides.

import { create } from '@bufbuild/protobuf'
import { mapConcurrently } from '../../../client/map-concurrently.ts'
import { VolumeCapability_AccessMode_Mode as Mode, VolumeCapabilitySchema } from '../../../csi/gen/csi_pb.js'
import { CsiError } from '../../../csi/index.ts'
import { bytesOf } from '../../space/bytes.ts'
import { createdAtOf, type Leak, type PvOfDriver } from './compare.ts'
import type { DriverProcess, Inventory, ReadDriverOptions } from './inventory.ts'

export interface CheckedVolumes {
  readonly leaks: readonly Leak[]
  /** Why the volumes of some PVs could not be checked. */
  readonly problems: readonly string[]
}

const CONCURRENT_CALLS_MAX = 8
/** Further failures are counted and not printed. */
const PROBLEMS_MAX = 3

type VolumeCheck =
  | { readonly is: 'present' }
  | { readonly is: 'missing' }
  | { readonly is: 'failed'; readonly message: string }

export async function checkUnlisted(
  unlisted: readonly PvOfDriver[],
  inventory: Inventory,
  options: ReadDriverOptions,
): Promise<CheckedVolumes> {
  const { driver, processes } = inventory
  const checks = await mapConcurrently(unlisted, CONCURRENT_CALLS_MAX, async (entry) => ({
    entry,
    check: await queryProcesses(entry, processes, inventory.volumes !== undefined, options),
  }))
  const failures = checks.flatMap(({ entry, check }) =>
    check.is === 'failed' ? [`the PV ${entry.volume.metadata.name} was not checked: ${check.message}`] : [],
  )
  const rest = failures.length - PROBLEMS_MAX
  return {
    leaks: checks
      .filter(({ check }) => check.is === 'missing')
      .map(({ entry: { volume, handle } }) => {
        const sizeBytes = bytesOf(volume.spec?.capacity?.storage)
        const { claimRef } = volume.spec ?? {}
        return {
          reason: 'PVWithoutVolume',
          driver,
          handle,
          object: volume.metadata.name,
          ...(sizeBytes === undefined ? {} : { sizeBytes }),
          ...createdAtOf(volume),
          message: `the driver has no such volume${claimRef ? `; the claim ${claimRef.namespace}/${claimRef.name} has lost its data` : ''}`,
        }
      }),
    problems: [...failures.slice(0, PROBLEMS_MAX), ...(rest > 0 ? [`${rest} more PVs were not checked`] : [])],
  }
}

/** The volume is missing only if no process of the driver has it. */
async function queryProcesses(
  entry: PvOfDriver,
  processes: readonly DriverProcess[],
  hasList: boolean,
  options: ReadDriverOptions,
): Promise<VolumeCheck> {
  let result: VolumeCheck = { is: 'missing' }
  for (const process of processes) {
    const check = await queryProcess(entry, process, hasList, options)
    if (check.is === 'present') return check
    if (check.is === 'failed') result = check
  }
  return result
}

async function queryProcess(
  { volume, handle }: PvOfDriver,
  { driver, facts }: DriverProcess,
  hasList: boolean,
  { timeoutMs, signal }: ReadDriverOptions,
): Promise<VolumeCheck> {
  try {
    if (facts.controller.has('GET_VOLUME'))
      await driver.controller.controllerGetVolume({ volumeId: handle }, { timeoutMs, signal })
    else if (hasList) return { is: 'missing' }
    else {
      const { csi, volumeMode } = volume.spec ?? {}
      await driver.controller.validateVolumeCapabilities(
        {
          volumeId: handle,
          volumeContext: { ...csi?.volumeAttributes },
          volumeCapabilities: [
            create(VolumeCapabilitySchema, {
              accessMode: { mode: Mode.SINGLE_NODE_WRITER },
              accessType:
                volumeMode === 'Block'
                  ? { case: 'block', value: {} }
                  : { case: 'mount', value: { fsType: csi?.fsType ?? '' } },
            }),
          ],
        },
        { timeoutMs, signal },
      )
    }
    return { is: 'present' }
  } catch (error) {
    if (error instanceof CsiError && error.codeName === 'NOT_FOUND') return { is: 'missing' }
    return { is: 'failed', message: (error as Error).message }
  }
}
