// Checks the placement policies of storage classes. The scheduler ignores a policy that it cannot parse.
import { storageClassKind } from '../../../../api/kinds/storage-class/storage-class.ts'
import { PLACEMENT } from '../../../../volumes/names.ts'
import { formatPlacement, readPlacement } from '../../../../volumes/placement.ts'
import type { Check, Finding } from '../check.ts'

export const placement: Check = {
  id: 'placement',
  title: 'Placement policies',
  async run({ cluster, driver }) {
    const classes = (await cluster.list(storageClassKind)).filter(
      ({ provisioner }) => driver === undefined || provisioner === driver,
    )
    const policies: string[] = []
    const findings = classes.flatMap((storageClass): Finding[] => {
      const { name } = storageClass.metadata
      const parsed = readPlacement(storageClass)
      if (parsed?.is !== 'invalid') {
        if (parsed) policies.push(`${name} has ${formatPlacement(parsed.placement)}`)
        return []
      }
      return [
        {
          status: 'warning',
          object: `StorageClass ${name}`,
          message: `Its placement policy is invalid, so the scheduler ignores it: ${parsed.message}.`,
          remedy: `kubectl annotate storageclass ${name} ${PLACEMENT}=spread --overwrite`,
        },
      ]
    })
    if (findings.length > 0 || policies.length === 0) return findings
    return [{ status: 'ok', message: `The placement policies are valid: ${policies.join(', ')}.` }]
  },
}
