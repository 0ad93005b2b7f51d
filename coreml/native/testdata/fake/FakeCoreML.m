// A fake of Apple's Core ML for GNUstep, so that the bridge's Objective-C
// calls run on Linux. What a model declares, what it computes and what fails
// is decided by the test, through the C functions at the end.
//
// Every object of the fake is counted, and marked dead instead of freed when
// its last reference goes, so that a message to a dead object is seen. Memory
// of arrays is filled with 0xDE then.
#import <Foundation/Foundation.h>
#include <math.h>
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define ALIVE 0x11FE11FEu
#define DEAD 0xDEADDEADu

// ---- what the test sets and sees ----

enum { PADDED = 1, IGNORE_BACKINGS = 2, REFUSE_BACKINGS = 4, NO_BACKINGS = 8 };
static int modes;
static char faults[4096];
static long calls, live, deaths;
static char failKind[32], failDomain[128], failText[512], failBelow[512];
static long failCode;
static int failLeft;

typedef int (*loader_t)(void *model, const char *path, const char *function, long units);
typedef int (*predictor_t)(void *model, void *provider, void *state, void *result);
typedef int (*compiler_t)(const char *src, char *dst, long size);
typedef int (*planner_t)(void *program, const char *path);
static loader_t loader;
static predictor_t predictor;
static compiler_t compiler;
static planner_t planner;

static char logText[1 << 16];
static size_t logLen;

static void note(const char *what) {
  calls++;
  size_t n = strlen(what);
  if (logLen + n + 2 < sizeof logText) {
    memcpy(logText + logLen, what, n);
    logLen += n;
    logText[logLen++] = '\n';
    logText[logLen] = 0;
  }
}

static void fault(const char *cls, const char *what) {
  size_t n = strlen(faults);
  if (n + strlen(cls) + strlen(what) + 4 < sizeof faults) {
    strcat(faults, cls); strcat(faults, ": "); strcat(faults, what); strcat(faults, "\n");
  }
}

static BOOL failing(const char *kind, NSError **e) {
  if (failLeft <= 0 || strcmp(kind, failKind) != 0) return NO;
  failLeft--;
  NSMutableDictionary *info = [NSMutableDictionary dictionary];
  [info setObject: [NSString stringWithUTF8String: failText] forKey: NSLocalizedDescriptionKey];
  if (failBelow[0])
    [info setObject: [NSError errorWithDomain: @"com.apple.appleneuralengine" code: 8
                                     userInfo: [NSDictionary dictionaryWithObject: [NSString stringWithUTF8String: failBelow] forKey: NSLocalizedDescriptionKey]]
             forKey: @"NSUnderlyingError"];
  if (e) *e = [NSError errorWithDomain: [NSString stringWithUTF8String: failDomain] code: failCode userInfo: info];
  return YES;
}

static NSError *error3(NSString *text) {
  return [NSError errorWithDomain: @"com.apple.CoreML" code: 3 userInfo: [NSDictionary dictionaryWithObject: text forKey: NSLocalizedDescriptionKey]];
}

// ---- a root that counts ----

@interface Counted : NSObject { @public unsigned magic; int fakeRefs; }
- (void)die;
@end
@implementation Counted
- (id)init { if ((self = [super init])) { magic = ALIVE; fakeRefs = 1; __sync_fetch_and_add(&live, 1); } return self; }
- (void)check: (const char *)what { if (magic != ALIVE) fault(object_getClassName(self), what); }
- (id)retain { [self check: "retain of a dead object"]; __sync_fetch_and_add(&fakeRefs, 1); return self; }
- (oneway void)release {
  [self check: "release of a dead object"];
  if (__sync_sub_and_fetch(&fakeRefs, 1) == 0) { [self die]; magic = DEAD; __sync_fetch_and_sub(&live, 1); __sync_fetch_and_add(&deaths, 1); }
}
- (NSUInteger)retainCount { return (NSUInteger)fakeRefs; }
- (void)die {}
@end
#define LIVE(what) [self check: what]

// ---- Core ML's classes ----

@interface MLModelConfiguration : Counted { NSInteger units; NSString *fn; } @end
@implementation MLModelConfiguration
- (void)setComputeUnits: (NSInteger)u { LIVE("setComputeUnits:"); units = u; }
- (NSInteger)computeUnits { return units; }
- (void)setFunctionName: (NSString *)s { LIVE("setFunctionName:"); [fn autorelease]; fn = [s copy]; }
- (NSString *)functionName { LIVE("functionName"); return fn; }
- (void)die { [fn release]; fn = nil; }
@end

static long elementSize(NSInteger t) { return (t & 0xffff) / 8; }

@interface MLMultiArray : Counted { @public char *p; NSArray *shp; NSArray *str; NSInteger dt; long bytes; }
- (id)initWithShape: (NSArray *)s dataType: (NSInteger)t padded: (BOOL)padded error: (NSError **)e;
@end
@implementation MLMultiArray
- (id)initWithShape: (NSArray *)s dataType: (NSInteger)t error: (NSError **)e { return [self initWithShape: s dataType: t padded: NO error: e]; }
- (id)initWithShape: (NSArray *)s dataType: (NSInteger)t padded: (BOOL)padded error: (NSError **)e {
  if (!(self = [super init])) return nil;
  NSInteger i, rank = [s count];
  if (failing("array", e)) { [self release]; return nil; }
  for (i = 0; i < rank; i++) if ([[s objectAtIndex: i] longLongValue] < 1) {
    if (e) *e = error3(@"bad shape"); [self release]; return nil; }
  if (elementSize(t) == 0) { if (e) *e = error3(@"bad data type"); [self release]; return nil; }
  NSMutableArray *st = [NSMutableArray array];
  long n = 1;
  for (i = rank - 1; i >= 0; i--) {
    [st insertObject: [NSNumber numberWithLongLong: n] atIndex: 0];
    n *= [[s objectAtIndex: i] longLongValue];
    if (padded && i == rank - 1) n = (n * elementSize(t) + 63) / 64 * 64 / elementSize(t);
    if (padded && i == rank - 2) n += 7; // nothing says that planes lie together
  }
  if (padded) { // the first dimension may be the fastest
    if (rank == 2 && (modes & PADDED) && [[s objectAtIndex: 0] longLongValue] > 1) {
      [st replaceObjectAtIndex: 0 withObject: [NSNumber numberWithLongLong: 1]];
      [st replaceObjectAtIndex: 1 withObject: [s objectAtIndex: 0]];
    }
  }
  dt = t; shp = [s copy]; str = [st copy]; bytes = n * elementSize(t);
  p = malloc(bytes);
  memset(p, 0x7F, bytes); // contents are not defined
  return self;
}
- (NSArray *)shape { LIVE("shape"); return shp; }
- (NSArray *)strides { LIVE("strides"); return str; }
- (NSInteger)dataType { LIVE("dataType"); return dt; }
- (void *)dataPointer { LIVE("dataPointer"); return p; }
struct Block { void *isa; int flags; int reserved; void (*invoke)(void *, ...); void *desc; };
- (void)getBytesWithHandler: (void *)b { LIVE("getBytesWithHandler:"); ((void (*)(void *, const void *, NSInteger))((struct Block *)b)->invoke)(b, p, bytes); }
- (void)getMutableBytesWithHandler: (void *)b {
  LIVE("getMutableBytesWithHandler:");
  ((void (*)(void *, void *, NSInteger, NSArray *))((struct Block *)b)->invoke)(b, p, bytes, str);
}
- (void)die { memset(p, 0xDE, bytes); free(p); p = NULL; [shp release]; [str release]; }
@end

@interface MLFeatureValue : Counted { @public MLMultiArray *arr; } @end
@implementation MLFeatureValue
+ (id)featureValueWithMultiArray: (MLMultiArray *)a { MLFeatureValue *v = [[self alloc] init]; v->arr = [a retain]; return [v autorelease]; }
- (MLMultiArray *)multiArrayValue { LIVE("multiArrayValue"); return arr; }
- (void)die { [arr release]; arr = nil; }
@end

@interface MLDictionaryFeatureProvider : Counted { @public NSMutableDictionary *d; } @end
@implementation MLDictionaryFeatureProvider
- (id)initWithDictionary: (NSDictionary *)x error: (NSError **)e {
  if (!(self = [super init])) return nil;
  if (failing("provider", e)) { [self release]; return nil; }
  d = [x mutableCopy];
  return self;
}
- (MLFeatureValue *)featureValueForName: (NSString *)n { LIVE("featureValueForName:"); return [d objectForKey: n]; }
- (void)die { [d release]; d = nil; }
@end

@interface MLMultiArrayConstraint : Counted { @public NSInteger dt; } @end
@implementation MLMultiArrayConstraint
- (NSInteger)dataType { LIVE("dataType"); return dt; }
@end

@interface MLFeatureDescription : Counted { @public MLMultiArrayConstraint *c; NSArray *shape; } @end
@implementation MLFeatureDescription
- (MLMultiArrayConstraint *)multiArrayConstraint { LIVE("multiArrayConstraint"); return c; }
- (void)die { [c release]; [shape release]; }
@end

@interface MLModelDescription : Counted { @public NSMutableDictionary *side[3]; } @end
@implementation MLModelDescription
- (id)init { if ((self = [super init])) { int i; for (i = 0; i < 3; i++) side[i] = [[NSMutableDictionary alloc] init]; } return self; }
- (NSDictionary *)inputDescriptionsByName { LIVE("inputDescriptionsByName"); return side[0]; }
- (NSDictionary *)outputDescriptionsByName { LIVE("outputDescriptionsByName"); return side[1]; }
- (void)die { int i; for (i = 0; i < 3; i++) [side[i] release]; }
@end

@interface MLPredictionOptions : Counted { @public NSDictionary *b; } @end
@implementation MLPredictionOptions
- (BOOL)respondsToSelector: (SEL)s {
  if ((modes & NO_BACKINGS) && sel_isEqual(s, @selector(setOutputBackings:))) return NO;
  return [super respondsToSelector: s];
}
- (void)setOutputBackings: (NSDictionary *)x { LIVE("setOutputBackings:"); [b autorelease]; b = [x copy]; }
- (void)die { [b release]; b = nil; }
@end

@interface MLState : Counted { @public NSMutableDictionary *d; } @end
@implementation MLState
- (id)init { if ((self = [super init])) d = [[NSMutableDictionary alloc] init]; return self; }
- (void)getMultiArrayForStateNamed: (NSString *)s handler: (void *)b {
  LIVE("getMultiArrayForStateNamed:handler:");
  MLMultiArray *a = [d objectForKey: s];
  if (!a) { fault("MLState", "no such state"); return; }
  ((void (*)(void *, id))((struct Block *)b)->invoke)(b, a);
}
- (void)die { [d release]; d = nil; }
@end

@interface Result : NSObject { @public MLDictionaryFeatureProvider *p; NSDictionary *backings; NSError *error; } @end
@implementation Result
@end

@interface MLModel : Counted { @public MLModelConfiguration *cfg; MLModelDescription *desc; NSMutableDictionary *states; } @end
@implementation MLModel
+ (id)modelWithContentsOfURL: (NSURL *)u configuration: (MLModelConfiguration *)c error: (NSError **)e {
  note("modelWithContentsOfURL:configuration:error:");
  if (failing("load", e)) return nil;
  if (![[u path] hasSuffix: @".mlmodelc"]) { if (e) *e = error3(@"not a compiled model"); return nil; }
  MLModel *m = [[[self alloc] init] autorelease];
  m->cfg = [c retain];
  m->desc = [[MLModelDescription alloc] init];
  m->states = [[NSMutableDictionary alloc] init];
  const char *fn = [c functionName] ? [[c functionName] UTF8String] : "";
  int r = loader ? loader(m, [[u path] UTF8String], fn, [c computeUnits]) : 0;
  if (r == 1) { if (e) *e = error3(@"functionName must be nil unless the model has several functions"); return nil; }
  if (r) { if (e) *e = error3(@"Error in reading the MIL network."); return nil; }
  return m;
}
+ (NSURL *)compileModelAtURL: (NSURL *)u error: (NSError **)e {
  note("compileModelAtURL:error:");
  char dst[4096];
  if (failing("compile", e)) return nil;
  if (!compiler || compiler([[u path] UTF8String], dst, sizeof dst)) { if (e) *e = error3(@"cannot compile"); return nil; }
  return [NSURL fileURLWithPath: [NSString stringWithUTF8String: dst]];
}
- (MLModelDescription *)modelDescription { LIVE("modelDescription"); return desc; }
- (MLState *)newState {
  LIVE("newState");
  note("newState");
  if (failing("state", NULL)) return nil;
  MLState *s = [[MLState alloc] init];
  NSEnumerator *en = [states keyEnumerator];
  NSString *k;
  while ((k = [en nextObject])) {
    MLFeatureDescription *f = [states objectForKey: k];
    MLMultiArray *a = [[MLMultiArray alloc] initWithShape: f->shape dataType: f->c->dt padded: modes & PADDED error: NULL];
    memset(a->p, 0, a->bytes);
    [s->d setObject: a forKey: k];
    [a release];
  }
  return s;
}
- (MLDictionaryFeatureProvider *)predictionFromFeatures: (MLDictionaryFeatureProvider *)p usingState: (MLState *)s options: (MLPredictionOptions *)o error: (NSError **)e {
  LIVE("predictionFromFeatures:");
  [p check: "features of a prediction"];
  [s check: "state of a prediction"];
  [o check: "options of a prediction"];
  note("predict");
  if (failing("predict", e)) return nil;
  if ([states count] > 0) {
    if (!s) { if (e) *e = error3(@"a state is missing"); return nil; }
    if (![[NSSet setWithArray: [states allKeys]] isEqual: [NSSet setWithArray: [s->d allKeys]]]) { if (e) *e = error3(@"the state is of another model"); return nil; }
  }
  if (o && o->b && (modes & REFUSE_BACKINGS)) { if (e) *e = error3(@"The output backing is not supported"); return nil; }
  Result *r = [[[Result alloc] init] autorelease];
  r->p = [[[MLDictionaryFeatureProvider alloc] initWithDictionary: [NSDictionary dictionary] error: NULL] autorelease];
  r->backings = (modes & IGNORE_BACKINGS) || !o ? nil : o->b;
  if (predictor && predictor(self, p, s, r)) { if (e) *e = error3(@"the prediction went wrong"); return nil; }
  return r->p;
}
- (id)predictionFromFeatures: (id)p usingState: (MLState *)s error: (NSError **)e { return [self predictionFromFeatures: p usingState: s options: nil error: e]; }
- (id)predictionFromFeatures: (id)p options: (id)o error: (NSError **)e { return [self predictionFromFeatures: p usingState: nil options: o error: e]; }
- (id)predictionFromFeatures: (id)p error: (NSError **)e { return [self predictionFromFeatures: p usingState: nil options: nil error: e]; }
- (void)die { [cfg release]; [desc release]; [states release]; }
@end

// ---- compute plans ----

#define DEVICE(name) @interface name : Counted @end @implementation name @end
DEVICE(MLCPUComputeDevice) DEVICE(MLGPUComputeDevice) DEVICE(MLNeuralEngineComputeDevice)

@interface MLModelStructureProgramNamedValueType : Counted { @public NSString *n; } @end
@implementation MLModelStructureProgramNamedValueType
- (NSString *)name { LIVE("name"); return n; }
- (void)die { [n release]; }
@end
@interface MLModelStructureProgramBlock : Counted { @public NSMutableArray *ops; } @end
@implementation MLModelStructureProgramBlock
- (id)init { if ((self = [super init])) ops = [[NSMutableArray alloc] init]; return self; }
- (NSArray *)operations { LIVE("operations"); return ops; }
- (void)die { [ops release]; }
@end
@interface MLModelStructureProgramOperation : Counted { @public NSString *op; NSArray *outs; NSMutableArray *inner; int device; double cost; } @end
@implementation MLModelStructureProgramOperation
- (NSString *)operatorName { LIVE("operatorName"); return op; }
- (NSArray *)outputs { LIVE("outputs"); return outs; }
- (NSArray *)blocks { LIVE("blocks"); return inner; }
- (void)die { [op release]; [outs release]; [inner release]; }
@end
@interface MLModelStructureProgramFunction : Counted { @public MLModelStructureProgramBlock *b; } @end
@implementation MLModelStructureProgramFunction
- (id)block { LIVE("block"); return b; }
- (void)die { [b release]; }
@end
@interface MLModelStructureProgram : Counted { @public NSMutableDictionary *fns; } @end
@implementation MLModelStructureProgram
- (id)init { if ((self = [super init])) fns = [[NSMutableDictionary alloc] init]; return self; }
- (NSDictionary *)functions { LIVE("functions"); return fns; }
- (void)die { [fns release]; }
@end
@interface MLModelStructure : Counted { @public MLModelStructureProgram *p; } @end
@implementation MLModelStructure
- (id)program { LIVE("program"); return p; }
- (void)die { [p release]; }
@end
@interface MLComputePlanCost : Counted { @public double w; } @end
@implementation MLComputePlanCost
- (double)weight { LIVE("weight"); return w; }
@end
@interface MLComputePlanDeviceUsage : Counted { @public id best; NSArray *all; } @end
@implementation MLComputePlanDeviceUsage
- (id)preferredComputeDevice { LIVE("preferredComputeDevice"); return best; }
- (NSArray *)supportedComputeDevices { LIVE("supportedComputeDevices"); return all; }
- (void)die { [best release]; [all release]; }
@end
@interface MLComputePlan : Counted { @public MLModelStructure *s; } @end
struct planCall { NSString *path; void *block; };
static void *planThread(void *arg) {
  struct planCall *c = arg;
  NSAutoreleasePool *pool = [[NSAutoreleasePool alloc] init];
  NSError *e = nil;
  MLComputePlan *plan = nil;
  if (!failing("plan", &e)) {
    plan = [[[MLComputePlan alloc] init] autorelease];
    plan->s = [[MLModelStructure alloc] init];
    plan->s->p = [[MLModelStructureProgram alloc] init];
    if (!planner || planner(plan->s->p, [c->path UTF8String])) { plan = nil; e = error3(@"no plan"); }
  }
  ((void (*)(void *, id, id))((struct Block *)c->block)->invoke)(c->block, plan, e);
  [c->path release];
  [pool drain];
  free(c);
  return NULL;
}
@implementation MLComputePlan
+ (void)loadContentsOfURL: (NSURL *)u configuration: (MLModelConfiguration *)c completionHandler: (void *)b {
  note("loadContentsOfURL:configuration:completionHandler:");
  struct planCall *call = malloc(sizeof *call);
  call->path = [[u path] copy];
  call->block = b;
  pthread_t t;
  pthread_create(&t, NULL, planThread, call);
  pthread_detach(t);
}
- (id)modelStructure { LIVE("modelStructure"); return s; }
- (id)computeDeviceUsageForMLProgramOperation: (MLModelStructureProgramOperation *)op {
  LIVE("computeDeviceUsageForMLProgramOperation:");
  if (op->device == 0) return nil;
  MLComputePlanDeviceUsage *u = [[[MLComputePlanDeviceUsage alloc] init] autorelease];
  id cpu = [[[MLCPUComputeDevice alloc] init] autorelease];
  u->best = op->device == 1 ? [cpu retain] : op->device == 2 ? [[MLGPUComputeDevice alloc] init] : [[MLNeuralEngineComputeDevice alloc] init];
  u->all = op->device == 1 ? [[NSArray arrayWithObject: cpu] retain] : [[NSArray arrayWithObjects: cpu, u->best, nil] retain];
  return u;
}
- (id)estimatedCostOfMLProgramOperation: (MLModelStructureProgramOperation *)op {
  LIVE("estimatedCostOfMLProgramOperation:");
  if (op->device == 0) return nil;
  MLComputePlanCost *c = [[[MLComputePlanCost alloc] init] autorelease];
  c->w = op->cost;
  return c;
}
- (void)die { [s release]; }
@end

// ---- for the test ----

void fake_hooks(void *l, void *p, void *c, void *pl) { loader = l; predictor = p; compiler = c; planner = pl; }
void fake_modes(int m) { modes = m; }
long fake_live(void) { return live; }
long fake_deaths(void) { return deaths; }
long fake_calls(void) { return calls; }
const char *fake_faults(void) { return faults; }
const char *fake_log(void) { return logText; }
void fake_reset(void) { faults[0] = 0; logLen = 0; logText[0] = 0; calls = 0; modes = 0; failLeft = 0; }
void fake_fail(const char *kind, const char *domain, long code, const char *text, const char *below, int times) {
  strncpy(failKind, kind, sizeof failKind - 1); strncpy(failDomain, domain, sizeof failDomain - 1);
  strncpy(failText, text, sizeof failText - 1); strncpy(failBelow, below, sizeof failBelow - 1);
  failCode = code; failLeft = times;
}

static NSArray *numbers(const long *v, int n) {
  NSMutableArray *a = [NSMutableArray array];
  int i;
  for (i = 0; i < n; i++) [a addObject: [NSNumber numberWithLongLong: v[i]]];
  return a;
}

// kind: 0 input, 1 output, 2 state
void fake_declare(MLModel *m, int kind, const char *name, long type, const long *shape, int rank) {
  MLFeatureDescription *f = [[[MLFeatureDescription alloc] init] autorelease];
  f->c = [[MLMultiArrayConstraint alloc] init];
  f->c->dt = type;
  f->shape = [numbers(shape, rank) copy];
  [(kind == 2 ? m->states : m->desc->side[kind]) setObject: f forKey: [NSString stringWithUTF8String: name]];
}

void *fake_input(MLDictionaryFeatureProvider *p, const char *name) { return [[p featureValueForName: [NSString stringWithUTF8String: name]] multiArrayValue]; }
void *fake_state(MLState *s, const char *name) { return [s->d objectForKey: [NSString stringWithUTF8String: name]]; }
void *fake_data(MLMultiArray *a) { return [a dataPointer]; }
long fake_bytes(MLMultiArray *a) { return a->bytes; }
long fake_type(MLMultiArray *a) { return a->dt; }
int fake_rank(MLMultiArray *a) { return (int)[a->shp count]; }
long fake_dim(MLMultiArray *a, int i) { return [[a->shp objectAtIndex: i] longLongValue]; }
long fake_stride(MLMultiArray *a, int i) { return [[a->str objectAtIndex: i] longLongValue]; }

// fake_output returns the array that an output goes to.
void *fake_output(Result *r, const char *name, long type, const long *shape, int rank) {
  NSString *n = [NSString stringWithUTF8String: name];
  MLMultiArray *a = [r->backings objectForKey: n];
  if (!a || (modes & PADDED))
    a = [[[MLMultiArray alloc] initWithShape: numbers(shape, rank) dataType: type padded: modes & PADDED error: NULL] autorelease];
  [r->p->d setObject: [MLFeatureValue featureValueWithMultiArray: a] forKey: n];
  return a;
}

// fake_op adds an op to a plan and returns it; device 0 none, 1 CPU, 2 GPU,
// 3 Neural Engine. parent NULL = the function itself.
void *fake_op(MLModelStructureProgram *p, const char *function, MLModelStructureProgramOperation *parent, const char *op, const char *out, int device, double cost) {
  NSString *f = [NSString stringWithUTF8String: function];
  MLModelStructureProgramFunction *fn = [p->fns objectForKey: f];
  if (!fn) {
    fn = [[[MLModelStructureProgramFunction alloc] init] autorelease];
    fn->b = [[MLModelStructureProgramBlock alloc] init];
    [p->fns setObject: fn forKey: f];
  }
  MLModelStructureProgramBlock *b = fn->b;
  if (parent) {
    if ([parent->inner count] == 0) [parent->inner addObject: [[[MLModelStructureProgramBlock alloc] init] autorelease]];
    b = [parent->inner objectAtIndex: 0];
  }
  MLModelStructureProgramOperation *o = [[[MLModelStructureProgramOperation alloc] init] autorelease];
  MLModelStructureProgramNamedValueType *v = [[[MLModelStructureProgramNamedValueType alloc] init] autorelease];
  v->n = [[NSString alloc] initWithUTF8String: out];
  o->op = [[NSString alloc] initWithUTF8String: op];
  o->outs = [[NSArray arrayWithObject: v] retain];
  o->inner = [[NSMutableArray alloc] init];
  o->device = device;
  o->cost = cost;
  [b->ops addObject: o];
  return o;
}
// What a table of methods is held to.
int fake_has(const char *cls, const char *sel, int isStatic) {
  Class c = objc_getClass(cls);
  if (!c) return 0;
  return isStatic ? class_getClassMethod(c, sel_registerName(sel)) != NULL : class_getInstanceMethod(c, sel_registerName(sel)) != NULL;
}
