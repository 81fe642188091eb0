// Reads the class that claims move to, and checks that it belongs to the driver of each claim's volume.
import { volumeAttributesClassKind } from '../../../api/kinds/attributes-class/attributes-class.ts'
import type { VolumeAttributesClass } from '../../../api/kinds/attributes-class/attributes-class-schema.ts'
import { persistentVolumeKind } from '../../../api/kinds/volume/volume.ts'
import { isForbidden, isNotFound, isNotServed } from '../../../api/status-error.ts'
import type { Client } from '../../../client/index.ts'
import type { Claim } from '../../bulk/index.ts'

const VOLUMES_PAGE_SIZE = 500

export interface TargetClass {
  /** Returns a message if the volume of the claim belongs to another driver. */
  describeMismatch(claim: Claim): string | undefined
}

export async function readTargetClass(client: Client, name: string): Promise<TargetClass> {
  const { driverName } = await readClass(client, name)
  const drivers = await readDriversOfVolumes(client)
  return {
    describeMismatch({ spec }) {
      const driver = drivers.get(spec?.volumeName ?? '')
      if (driver === undefined || driver === driverName) return undefined
      return `the volume belongs to driver ${driver}, but class ${name} belongs to driver ${driverName}`
    },
  }
}

export async function readClass(client: Client, name: string): Promise<Readonly<VolumeAttributesClass>> {
  try {
    return await client.get(volumeAttributesClassKind, { name })
  } catch (error) {
    if (isNotServed(error)) {
      throw new Error('The server does not serve VolumeAttributesClasses; enable them with its flag --runtime-config.')
    }
    if (isNotFound(error)) {
      throw new Error(`There is no VolumeAttributesClass ${name}; create it first (kubectl get vac lists them).`)
    }
    throw error
  }
}

/** Returns drivers by volume name. Without permission to list volumes, drivers are not checked. */
async function readDriversOfVolumes(client: Client): Promise<ReadonlyMap<string, string>> {
  const drivers = new Map<string, string>()
  try {
    for (let continueToken: string | undefined; ; ) {
      const page = await client.list(persistentVolumeKind, { limit: VOLUMES_PAGE_SIZE, continueToken })
      for (const { metadata, spec } of page.items) if (spec?.csi) drivers.set(metadata.name, spec.csi.driver)
      continueToken = page.continueToken
      if (!continueToken) break
    }
  } catch (error) {
    if (!isForbidden(error)) throw error
  }
  return drivers
}
