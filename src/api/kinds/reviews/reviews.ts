// The review kinds: questions that clients POST and the API server answers. They have no rules of their own but shape.
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

const question = <T extends KubeObject>(
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

export const REVIEW_KINDS: readonly Kind[] = [
  question('authentication.k8s.io', 'SelfSubjectReview', selfSubjectReview),
  question('authentication.k8s.io', 'TokenReview', tokenReview),
  question('authorization.k8s.io', 'LocalSubjectAccessReview', localSubjectAccessReview, true),
  question('authorization.k8s.io', 'SelfSubjectAccessReview', selfSubjectAccessReview),
  question('authorization.k8s.io', 'SelfSubjectRulesReview', selfSubjectRulesReview),
  question('authorization.k8s.io', 'SubjectAccessReview', subjectAccessReview),
]
