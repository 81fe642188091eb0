// The schema of Activity: a component's attempt to do its work on an object, or a call to a driver. An OperationReport contains
// activities, and the journal stores them.
import { double, type Infer, int32, microTime, object, opt, req, string } from '../../schema.ts'
import { objectReference } from '../shared/references-schema.ts'

export const activity = object(
  'dev.stowage.v1.Activity',
  'An attempt of a component to do its work on an object, or a call to a CSI driver.',
  {
    start: req(1, microTime, 'When the attempt or call started.'),
    durationMs: req(2, double, 'Duration of the attempt or call, in milliseconds.'),
    result: req(3, string, 'Done, Retry or Stuck for an attempt; the gRPC code for a call.'),
    reason: opt(4, string, 'Machine-readable reason of the result, in CamelCase.'),
    message: opt(5, string, 'Human-readable result.'),
    object: opt(6, objectReference, 'The object of an attempt.'),
    component: opt(7, string, 'Component that made the attempt, such as provisioner.'),
    operation: opt(8, string, 'What the component tried, such as Provision or Attach.'),
    attempt: opt(9, int32, 'Number of the attempt, from 1.'),
    driver: opt(10, string, 'Name of the called CSI driver.'),
    method: opt(11, string, 'Called CSI method, such as CreateVolume.'),
    volume: opt(12, string, 'Name of the volume in CreateVolume; its ID in other calls.'),
  },
)
export type Activity = Infer<typeof activity>
