// Reads the provisioned IO of a volume from its PV or claim, or otherwise from its VolumeAttributesClass.
import { volumeAttributesClassKind } from '../../api/kinds/attributes-class/attributes-class.ts'
import { isQuantity, quantityToBytes } from '../../api/quantity.ts'
import { normalizeThroughput } from '../../api/throughput.ts'
import type { Client } from '../../client/index.ts'
import type { CsiVolume } from '../csi/csi-volume.ts'

export interface ProvisionedIo {
  readonly iops?: number
  readonly throughputBytes?: number
}

const MIB = 1_048_576

export async function provisionedIo({ pv, claim }: CsiVolume, client: Client): Promise<ProvisionedIo> {
  const capacity = { ...claim?.status?.capacity, ...pv?.spec?.capacity } as Record<string, string | number>
  const iops = toNumber(capacity.iops)
  const throughput =
    capacity.throughput === undefined ? undefined : toNumber(normalizeThroughput(String(capacity.throughput)))
  const className = claim?.status?.currentVolumeAttributesClassName ?? pv?.spec?.volumeAttributesClassName
  if ((iops !== undefined && throughput !== undefined) || !className) return withoutUndefined(iops, throughput)
  const denialMessage = 'the metrics of provisioned IO do not include the parameters of attributes classes'
  const attributes = await client
    .get(volumeAttributesClassKind, { name: className }, { denialMessage })
    .catch(() => undefined)
  const { parameters = {} } = attributes ?? {}
  const mibPerSecond = toNumber(parameters.throughput) // drivers use whole MiB/s
  return withoutUndefined(
    iops ?? toNumber(parameters.iops),
    throughput ?? (mibPerSecond === undefined ? undefined : mibPerSecond * MIB),
  )
}

const withoutUndefined = (iops: number | undefined, throughputBytes: number | undefined): ProvisionedIo => ({
  ...(iops === undefined ? {} : { iops }),
  ...(throughputBytes === undefined ? {} : { throughputBytes }),
})

const toNumber = (value: string | number | undefined): number | undefined =>
  value !== undefined && isQuantity(value) ? Number(quantityToBytes(value)) : undefined
