// Decides whether a container that has exited is started again. Pure.
import type { Container } from '../../api/kinds/pod/container-schema.ts'
import type { Pod } from '../../api/kinds/pod/pod-schema.ts'

type RestartingContainer = Pick<Container, 'restartPolicy' | 'restartPolicyRules'>

/** Whether an init container keeps running while the main containers run. */
export const isSidecar = ({ restartPolicy }: RestartingContainer): boolean => restartPolicy === 'Always'

/** Whether a main container that exited with this code is started again. */
export function shouldRestart({ spec }: Readonly<Pod>, container: RestartingContainer, code: number): boolean {
  for (const { action, exitCodes } of container.restartPolicyRules ?? []) {
    const isListed = exitCodes?.values?.includes(code) ?? false
    if (action === 'Restart' && exitCodes && isListed === (exitCodes.operator === 'In')) return true
  }
  const policy = container.restartPolicy ?? spec?.restartPolicy ?? 'Always'
  return policy === 'Always' || (policy === 'OnFailure' && code !== 0)
}

/** Whether an init container that failed is started again. */
export const shouldRestartInit = ({ spec }: Readonly<Pod>, container: RestartingContainer): boolean =>
  (container.restartPolicy ?? spec?.restartPolicy ?? 'Always') !== 'Never'
