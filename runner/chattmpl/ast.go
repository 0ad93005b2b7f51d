package chattmpl

// expr is an expression.
type expr interface {
	eval(x *exec, s *scope) any
}

type (
	constExpr struct{ v any }
	nameExpr  struct{ name string }
	listExpr  struct {
		items []expr
		tuple bool
	}
	dictExpr struct{ keys, vals []expr }
	attrExpr struct {
		obj  expr
		name string
		line int
	}
	indexExpr struct {
		obj, index expr
		line       int
	}
	sliceExpr struct{ start, stop, step expr } // each may be nil
	callExpr  struct {
		fn   expr
		args callArgs
		line int
	}
	filterExpr struct {
		in   expr // nil: the text of a filter block
		name string
		args callArgs
		line int
	}
	testExpr struct {
		in      expr
		name    string
		args    callArgs
		negated bool
		line    int
	}
	condExpr struct {
		cond, then, other expr // other may be nil
		line              int
	}
	unaryExpr struct {
		op   string
		in   expr
		line int
	}
	binaryExpr struct {
		op          string
		left, right expr
		line        int
	}
	logicExpr struct {
		and         bool
		left, right expr
	}
	compareExpr struct {
		first expr
		ops   []string
		rest  []expr
		line  int
	}
)

// callArgs are the arguments of a call, filter or test.
type callArgs struct {
	pos        []expr
	names      []string
	named      []expr
	star, dict expr // *args and **kwargs; may be nil
}

// stmt is a statement.
type stmt interface {
	exec(x *exec, s *scope)
}

type (
	textStmt   struct{ text string }
	outputStmt struct {
		e    expr
		line int
	}
	ifStmt struct {
		conds  []expr
		bodies [][]stmt
		other  []stmt
		line   int
	}
	forStmt struct {
		target    target
		iter      expr
		cond      expr // may be nil
		body      []stmt
		other     []stmt
		recursive bool
		line      int
	}
	setStmt struct {
		target target
		value  expr
		line   int
	}
	setBlockStmt struct {
		target  target
		body    []stmt
		filters []*filterExpr
		line    int
	}
	macroStmt struct {
		name     string
		params   []string
		defaults []expr // of the last parameters
		body     []stmt
		varargs  bool // the body uses varargs
		kwargs   bool // the body uses kwargs
		caller   bool // the body uses caller
		line     int
	}
	callStmt struct {
		macro *macroStmt
		call  *callExpr
		line  int
	}
	filterStmt struct {
		filters []*filterExpr
		body    []stmt
		line    int
	}
	withStmt struct {
		targets []target
		values  []expr
		body    []stmt
	}
	loopControl struct{ stop bool } // break, else continue
)

// target is what is assigned to: a name, an attribute of a namespace, or a tuple of targets.
type target struct {
	name  string
	attr  string
	parts []target
}
