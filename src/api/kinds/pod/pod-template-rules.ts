// Validates the pod template of a controller with the rules for pods.
import { FieldErrors } from '../../field-errors.ts'
import type { RuleContext } from '../../kind.ts'
import { validateAnnotations, validateLabels } from '../../meta.ts'
import { validatePodSpec } from './pod-rules.ts'
import type { PodTemplateSpec } from './pod-template-schema.ts'

/** Adds the errors of the template at `field`, such as `spec.template`. */
export function validatePodTemplate(
  { metadata = {}, spec }: PodTemplateSpec,
  field: string,
  errors: FieldErrors,
  context: RuleContext,
): void {
  validateLabels(metadata.labels, `${field}.metadata.labels`, errors)
  validateAnnotations(metadata.annotations, `${field}.metadata.annotations`, errors)
  const podErrors = new FieldErrors()
  validatePodSpec({ metadata: {}, spec }, podErrors, context)
  errors.addNested(field, podErrors)
  if (spec.ephemeralContainers?.length)
    errors.forbidden(`${field}.spec.ephemeralContainers`, 'ephemeral containers not allowed in pod template')
}
