// Checks the policies of storage classes for lost volumes. A policy that cannot be parsed counts as wait.
import { storageClassKind } from '../../../../api/kinds/storage-class/storage-class.ts'
import { formatLostVolumePolicy, readLostVolumePolicy } from '../../../../volumes/lost-volume-policy.ts'
import { LOST_VOLUME_POLICY } from '../../../../volumes/names.ts'
import type { Check, Finding } from '../check.ts'

export const lostVolumePolicy: Check = {
  id: 'lost-volume-policy',
  title: 'Policies for lost volumes',
  async run({ cluster, driver }) {
    const classes = (await cluster.list(storageClassKind)).filter(
      ({ provisioner }) => driver === undefined || provisioner === driver,
    )
    const policies: string[] = []
    const findings = classes.flatMap((storageClass): Finding[] => {
      const { name } = storageClass.metadata
      const parsed = readLostVolumePolicy(storageClass)
      if (parsed?.is !== 'invalid') {
        if (parsed) policies.push(`${name} has ${formatLostVolumePolicy(parsed.policy)}`)
        return []
      }
      return [
        {
          status: 'warning',
          object: `StorageClass ${name}`,
          message: `Its policy for lost volumes is invalid, so it counts as wait: ${parsed.message}.`,
          remedy: `kubectl annotate storageclass ${name} ${LOST_VOLUME_POLICY}=wait --overwrite`,
        },
      ]
    })
    if (findings.length > 0 || policies.length === 0) return findings
    return [{ status: 'ok', message: `The policies for lost volumes are valid: ${policies.join(', ')}.` }]
  },
}
