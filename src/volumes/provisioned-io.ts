// Reads the provisioned IO of a volume from its PV or claim. Its VolumeAttributesClass provides the values that both lack.
import type { PersistentVolumeClaim } from '../api/kinds/claim/claim-schema.ts'
import type { PersistentVolume } from '../api/kinds/volume/volume-schema.ts'
import { isQuantity, quantityToBytes } from '../api/quantity.ts'
import { normalizeThroughput } from '../api/throughput.ts'

/** Values that are not limited, or not known, are absent. */
export interface ProvisionedIo {
  readonly iops?: number
  /** Bytes per second. */
  readonly throughputBytes?: number
}

export interface IoSources {
  readonly claim?: Readonly<PersistentVolumeClaim> | undefined
  readonly volume?: Readonly<PersistentVolume> | undefined
  /** Parameters of the class that `attributesClassOf` names. */
  readonly parameters?: Readonly<Record<string, string>> | undefined
}

const MIB = 1_048_576

export function provisionedIo({ claim, volume, parameters = {} }: IoSources): ProvisionedIo {
  const capacity = { ...claim?.status?.capacity, ...volume?.spec?.capacity } as Record<string, string | number>
  const throughput =
    capacity.throughput === undefined ? undefined : toNumber(normalizeThroughput(String(capacity.throughput)))
  const mibPerSecond = toNumber(parameters.throughput) // drivers use whole MiB/s
  const iops = toNumber(capacity.iops) ?? toNumber(parameters.iops)
  const throughputBytes = throughput ?? (mibPerSecond === undefined ? undefined : mibPerSecond * MIB)
  return {
    ...(iops === undefined ? {} : { iops }),
    ...(throughputBytes === undefined ? {} : { throughputBytes }),
  }
}

/** Returns the name of the VolumeAttributesClass that the volume has now. */
export const attributesClassOf = ({ claim, volume }: IoSources): string | undefined =>
  (claim?.status?.currentVolumeAttributesClassName ?? volume?.spec?.volumeAttributesClassName) || undefined

const toNumber = (value: string | number | undefined): number | undefined =>
  value !== undefined && isQuantity(value) ? Number(quantityToBytes(value)) : undefined
