// The provisioned IO of a volume: from its PV or claim, else from its VolumeAttributesClass.
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
  const reported = { ...claim?.status?.capacity, ...pv?.spec?.capacity } as Record<string, string | number>
  const iops = countOf(reported.iops)
  const throughput =
    reported.throughput === undefined ? undefined : countOf(normalizeThroughput(String(reported.throughput)))
  const className = claim?.status?.currentVolumeAttributesClassName ?? pv?.spec?.volumeAttributesClassName
  if ((iops !== undefined && throughput !== undefined) || !className) return known(iops, throughput)
  const attributes = await client.get(volumeAttributesClassKind, { name: className }).catch(() => undefined)
  const { parameters = {} } = attributes ?? {}
  const mibPerSecond = countOf(parameters.throughput) // drivers use whole MiB/s
  return known(
    iops ?? countOf(parameters.iops),
    throughput ?? (mibPerSecond === undefined ? undefined : mibPerSecond * MIB),
  )
}

const known = (iops: number | undefined, throughputBytes: number | undefined): ProvisionedIo => ({
  ...(iops === undefined ? {} : { iops }),
  ...(throughputBytes === undefined ? {} : { throughputBytes }),
})

const countOf = (text: string | number | undefined): number | undefined =>
  text !== undefined && isQuantity(text) ? Number(quantityToBytes(text)) : undefined
