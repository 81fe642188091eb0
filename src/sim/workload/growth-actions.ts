// Actions of users on claims that grow by themselves: create such claims, and change their policies.
import type { Ref, UserAction } from '../plan/plan.ts'
import { type Draft, keyOf, pickName, pickObject, someClaim } from './draft.ts'

const POLICY = 'stowage.dev/auto-grow'

/** The last maximum exceeds that of net.sim, which rejects the size. The request is then lowered. */
const POLICIES = [
  'threshold=60%,step=50%,max=4Gi,cooldown=1m',
  'threshold=80%,step=1Gi,max=6500Mi,cooldown=30s',
  'threshold=50%,step=100%,max=12Gi,cooldown=2m',
  'threshold=50%,step=200%,max=40Gi,cooldown=30s',
]
const OTHER_VALUES = ['off', 'max=wide', 'threshold=70%,max=1Gi']

export function createGrowingClaim(draft: Draft): UserAction {
  const { rng, claims } = draft
  const ref = pickName(rng, claims, () => someClaim(rng))
  const className = rng.pick(['net-now', 'net-now', 'net-wait', 'local-wait', 'local-now', 'basic'])
  const sizeGi = rng.between(1, 3)
  if (!claims.has(keyOf(ref))) claims.set(keyOf(ref), { ref, className, sizeGi })
  const spec = {
    accessModes: ['ReadWriteOnce'],
    storageClassName: className,
    resources: { requests: { storage: `${sizeGi}Gi` } },
  }
  const metadata = { ...ref, annotations: { [POLICY]: rng.pick(POLICIES) } }
  return { do: 'create', kind: 'claim', object: { metadata, spec } }
}

export function changeGrowthPolicy({ rng, claims }: Draft): UserAction {
  const ref: Ref = pickObject(rng, claims, () => someClaim(rng))
  const value = rng.chance(0.7) ? rng.pick(POLICIES) : rng.chance(0.7) ? rng.pick(OTHER_VALUES) : null
  const patch = { metadata: { annotations: { [POLICY]: value } } }
  return { do: 'edit', kind: 'claim', ref, patch, purpose: 'growth policy' }
}
