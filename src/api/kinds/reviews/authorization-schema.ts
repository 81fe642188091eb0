// Questions about what somebody may do: answered by the API server, never stored.
import { boolean, type Infer, list, map, object, opt, ptr, req, string } from '../../schema.ts'
import { labelSelectorRequirement, objectMeta } from '../shared/meta-schema.ts'

export const fieldSelectorRequirement = object(
  'io.k8s.apimachinery.pkg.apis.meta.v1.FieldSelectorRequirement',
  'One condition on a field.',
  {
    key: req(1, string, 'The field.'),
    operator: req(2, string, 'In, NotIn, Exists or DoesNotExist.'),
    values: opt(3, list(string), 'Values the operator compares with.'),
  },
)

export const fieldSelectorAttributes = object(
  'io.k8s.api.authorization.v1.FieldSelectorAttributes',
  'The field selector of the request asked about.',
  {
    rawSelector: opt(1, string, 'The selector as a query parameter writes it.'),
    requirements: opt(2, list(fieldSelectorRequirement), 'The selector taken apart.'),
  },
)

export const labelSelectorAttributes = object(
  'io.k8s.api.authorization.v1.LabelSelectorAttributes',
  'The label selector of the request asked about.',
  {
    rawSelector: opt(1, string, 'The selector as a query parameter writes it.'),
    requirements: opt(2, list(labelSelectorRequirement), 'The selector taken apart.'),
  },
)

export const resourceAttributes = object(
  'io.k8s.api.authorization.v1.ResourceAttributes',
  'A request for a resource.',
  {
    namespace: opt(1, string, 'The namespace; empty for all of them or for cluster scope.'),
    verb: opt(2, string, 'What would be done: get, list, watch, create, update, patch, delete, …'),
    group: opt(3, string, 'API group; empty for the core group.'),
    version: opt(4, string, 'API version.'),
    resource: opt(5, string, 'Plural name of the resource.'),
    subresource: opt(6, string, 'What hangs below the object, such as status.'),
    name: opt(7, string, 'Name of the object; empty for all of them.'),
    fieldSelector: ptr(8, fieldSelectorAttributes, 'Limits the request by fields.'),
    labelSelector: ptr(9, labelSelectorAttributes, 'Limits the request by labels.'),
  },
)

export const nonResourceAttributes = object(
  'io.k8s.api.authorization.v1.NonResourceAttributes',
  'A request for a path that is no resource.',
  {
    path: opt(1, string, 'The path.'),
    verb: opt(2, string, 'The HTTP method in lower case.'),
  },
)

export const subjectAccessReviewSpec = object(
  'io.k8s.api.authorization.v1.SubjectAccessReviewSpec',
  'Who would do what. Exactly one of the two kinds of request is given.',
  {
    resourceAttributes: ptr(1, resourceAttributes, 'The request, if it is for a resource.'),
    nonResourceAttributes: ptr(2, nonResourceAttributes, 'The request, if it is for another path.'),
    user: opt(3, string, 'Name of the user asked about.'),
    groups: opt(4, list(string), 'Groups the user is in.'),
    extra: opt(5, map(list(string)), 'Further facts about the user, by name.'),
    uid: opt(6, string, 'Identity of the user that survives a change of name.'),
  },
)

export const subjectAccessReviewStatus = object(
  'io.k8s.api.authorization.v1.SubjectAccessReviewStatus',
  'Whether it would be allowed.',
  {
    allowed: req(1, boolean, 'True when the request would be allowed.'),
    denied: opt(4, boolean, 'True when it would be refused whatever other authorizers say.'),
    reason: opt(2, string, 'Which rule decided.'),
    evaluationError: opt(3, string, 'What went wrong while deciding.'),
  },
)

export const subjectAccessReview = object(
  'io.k8s.api.authorization.v1.SubjectAccessReview',
  'Asks whether a user may do something.',
  {
    metadata: req(1, objectMeta, 'Standard metadata; reviews are answered and never stored.'),
    spec: req(2, subjectAccessReviewSpec, 'What is asked.'),
    status: opt(3, subjectAccessReviewStatus, 'The answer, filled in by the server.'),
  },
)

export type SubjectAccessReview = Infer<typeof subjectAccessReview>

export const selfSubjectAccessReviewSpec = object(
  'io.k8s.api.authorization.v1.SelfSubjectAccessReviewSpec',
  'What the asking user would do. Exactly one of the two kinds of request is given.',
  {
    resourceAttributes: ptr(1, resourceAttributes, 'The request, if it is for a resource.'),
    nonResourceAttributes: ptr(2, nonResourceAttributes, 'The request, if it is for another path.'),
  },
)

export const selfSubjectAccessReview = object(
  'io.k8s.api.authorization.v1.SelfSubjectAccessReview',
  'Asks whether the asking user may do something.',
  {
    metadata: req(1, objectMeta, 'Standard metadata; reviews are answered and never stored.'),
    spec: req(2, selfSubjectAccessReviewSpec, 'What is asked.'),
    status: opt(3, subjectAccessReviewStatus, 'The answer, filled in by the server.'),
  },
)

export type SelfSubjectAccessReview = Infer<typeof selfSubjectAccessReview>

export const localSubjectAccessReview = object(
  'io.k8s.api.authorization.v1.LocalSubjectAccessReview',
  'Asks whether a user may do something in one namespace.',
  {
    metadata: req(1, objectMeta, 'Standard metadata; reviews are answered and never stored.'),
    spec: req(2, subjectAccessReviewSpec, 'What is asked.'),
    status: opt(3, subjectAccessReviewStatus, 'The answer, filled in by the server.'),
  },
)

export type LocalSubjectAccessReview = Infer<typeof localSubjectAccessReview>

export const selfSubjectRulesReviewSpec = object(
  'io.k8s.api.authorization.v1.SelfSubjectRulesReviewSpec',
  'Where the rules are asked for.',
  {
    namespace: opt(1, string, 'The namespace; empty for all of them or for cluster scope.'),
  },
)

export const resourceRule = object(
  'io.k8s.api.authorization.v1.ResourceRule',
  'What may be done with some resources.',
  {
    verbs: req(1, list(string), 'What may be done; * for everything.'),
    apiGroups: opt(2, list(string), 'Groups the rule speaks of; * for all.'),
    resources: opt(3, list(string), 'Resources the rule speaks of; * for all.'),
    resourceNames: opt(4, list(string), 'Objects the rule is limited to; none for all.'),
  },
)

export const nonResourceRule = object(
  'io.k8s.api.authorization.v1.NonResourceRule',
  'What may be done with some paths.',
  {
    verbs: req(1, list(string), 'What may be done; * for everything.'),
    nonResourceURLs: opt(2, list(string), 'Paths; a trailing * stands for anything.'),
  },
)

export const subjectRulesReviewStatus = object(
  'io.k8s.api.authorization.v1.SubjectRulesReviewStatus',
  'Everything the user may do, as far as it can be listed.',
  {
    resourceRules: req(1, list(resourceRule), 'Rules for resources.'),
    nonResourceRules: req(2, list(nonResourceRule), 'Rules for other paths.'),
    incomplete: req(3, boolean, 'True when there may be more.'),
    evaluationError: opt(4, string, 'What went wrong while deciding.'),
  },
)

export const selfSubjectRulesReview = object(
  'io.k8s.api.authorization.v1.SelfSubjectRulesReview',
  'Asks for everything the asking user may do in a namespace.',
  {
    metadata: req(1, objectMeta, 'Standard metadata; reviews are answered and never stored.'),
    spec: req(2, selfSubjectRulesReviewSpec, 'What is asked.'),
    status: opt(3, subjectRulesReviewStatus, 'The answer, filled in by the server.'),
  },
)

export type SelfSubjectRulesReview = Infer<typeof selfSubjectRulesReview>
