// Declares the reviews of authentication and authorization, which the API server evaluates without storing them. They have no
// validation rules.
import { createdAtColumn, nameColumn } from '../../columns.ts'
import { defineKind, type Kind, type KubeObject } from '../../kind.ts'
import type { ObjectType } from '../../schema.ts'
import { selfSubjectReview, tokenReview } from './authentication-schema.ts'
import {
  localSubjectAccessReview,
  selfSubjectAccessReview,
  selfSubjectRulesReview,
  subjectAccessReview,
} from './authorization-schema.ts'

const defineReviewKind = <T extends KubeObject>(
  group: string,
  kind: string,
  type: ObjectType<T>,
  namespaced = false,
): Kind<T> =>
  defineKind<T>({
    group,
    versions: ['v1'],
    kind,
    plural: `${kind.toLowerCase()}s`,
    singular: kind.toLowerCase(),
    namespaced,
    type,
    isReview: true,
    nameErrors: () => [],
    validate() {},
    columns: [nameColumn, createdAtColumn],
    deleteReturnsObject: false,
  })

export const selfSubjectAccessReviewKind = defineReviewKind(
  'authorization.k8s.io',
  'SelfSubjectAccessReview',
  selfSubjectAccessReview,
)

export const subjectAccessReviewKind = defineReviewKind(
  'authorization.k8s.io',
  'SubjectAccessReview',
  subjectAccessReview,
)

export const selfSubjectReviewKind = defineReviewKind('authentication.k8s.io', 'SelfSubjectReview', selfSubjectReview)

export const REVIEW_KINDS: readonly Kind[] = [
  selfSubjectReviewKind,
  defineReviewKind('authentication.k8s.io', 'TokenReview', tokenReview),
  defineReviewKind('authorization.k8s.io', 'LocalSubjectAccessReview', localSubjectAccessReview, true),
  selfSubjectAccessReviewKind,
  defineReviewKind('authorization.k8s.io', 'SelfSubjectRulesReview', selfSubjectRulesReview),
  subjectAccessReviewKind,
]
