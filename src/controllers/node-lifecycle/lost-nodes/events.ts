// The events that report the phase changes of a lost node.
import type { EventDetails } from '../../../runtime/index.ts'
import type { LostNodePlan, NodePhase } from './plan-lost-node.ts'

const REASONS: Readonly<Record<NodePhase, string>> = {
  InService: 'NodeReturned',
  Unreachable: 'NodeUnfenced',
  Fenced: 'NodeFenced',
  Lost: 'NodeLost',
  Cleaned: 'NodeCleaned',
  Quarantined: 'NodeQuarantined',
}

export const phaseEvent = (
  name: string,
  oldPhase: NodePhase,
  { phase, message }: Pick<LostNodePlan, 'phase' | 'message'>,
): EventDetails => ({
  type: phase === 'InService' || phase === 'Cleaned' ? 'Normal' : 'Warning',
  reason: REASONS[phase],
  message: `Node ${name} was ${oldPhase} and is now ${phase}: ${message}`,
})
