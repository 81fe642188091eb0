// Reads the provisioned IO of a mounted volume, with the parameters of its VolumeAttributesClass if they are needed.
import { volumeAttributesClassKind } from '../../api/kinds/attributes-class/attributes-class.ts'
import type { Client } from '../../client/index.ts'
import { attributesClassOf, type ProvisionedIo, provisionedIo } from '../../volumes/provisioned-io.ts'
import type { CsiVolume } from '../csi/csi-volume.ts'

export async function readProvisionedIo({ pv, claim }: CsiVolume, client: Client): Promise<ProvisionedIo> {
  const sources = { volume: pv, claim }
  const io = provisionedIo(sources)
  const className = attributesClassOf(sources)
  if ((io.iops !== undefined && io.throughputBytes !== undefined) || className === undefined) return io
  const denialMessage = 'the metrics of provisioned IO do not include the parameters of attributes classes'
  const attributes = await client
    .get(volumeAttributesClassKind, { name: className }, { denialMessage })
    .catch(() => undefined)
  return provisionedIo({ ...sources, parameters: attributes?.parameters })
}
